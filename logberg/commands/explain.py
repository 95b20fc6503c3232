"""`logberg explain`: why a partition or a broker is as it is, and whose request made it so.

Rule: what the state says comes from the controller; who asked comes from the log.
"""

import click

from logberg.cli.connection_options import ClusterConnection, reading_options
from logberg.cli.partition_names import partition_named
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.client import LogbergClient
from logberg.commands.explain_coordination import COORDINATION
from logberg.commands.last_changes import ThingChanges, depth_option, last_changes, show_findings
from metadata.messages.findings import Explanation
from metadata.messages.log import RecordInWords


@click.group("explain", cls=SuggestingGroup)
def command() -> None:
    """Say why a partition, a broker, a lock, a session or a key is as it is, and who made it so."""


@command.command("partition")
@click.argument("partition")
@depth_option
@reading_options
def partition_command(
    *, partition: str, depth: int, cluster: ClusterConnection, output: str
) -> None:
    """Explain a partition, such as orders-0."""
    topic, number = partition_named(partition)

    async def ask(client: LogbergClient) -> tuple[tuple[Explanation, ...], ThingChanges]:
        reply = await client.partition(topic, number)

        def concerns(record: RecordInWords) -> bool:
            data = record.data
            same = data.get("topicId") == reply.topic_id and data.get("partitionId") == number
            return same and record.type.startswith("PARTITION_")

        return reply.findings, await last_changes(client, reply.offset, depth, concerns)

    findings, causes = cluster.ask(ask)
    show_findings(
        f"partition {topic}-{number}", "nothing is wrong with it", findings, causes, output
    )


@command.command("broker")
@click.argument("broker_id", type=int)
@depth_option
@reading_options
def broker_command(*, broker_id: int, depth: int, cluster: ClusterConnection, output: str) -> None:
    """Explain why a broker is fenced, or why it may not stop."""

    async def ask(client: LogbergClient) -> tuple[str, tuple[Explanation, ...], ThingChanges]:
        reply = await client.explain_broker(broker_id)

        def concerns(record: RecordInWords) -> bool:
            data = record.data
            return "BROKER" in record.type and broker_id in (data.get("brokerId"), data.get("id"))

        causes = await last_changes(client, reply.offset, depth, concerns)
        return reply.state, reply.findings, causes

    state, findings, causes = cluster.ask(ask)
    show_findings(f"broker {broker_id}", f"it is {state}", findings, causes, output)


for _each in COORDINATION:
    command.add_command(_each)
