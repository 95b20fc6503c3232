"""`logberg explain`: why a partition or a broker is as it is, and whose request made it so.

Rule: what the state says comes from the controller; who asked comes from the log. The log is read
backwards from its end, or from the moment of `--at`, in pieces, until the records are found that
last changed the thing, or until so many records were read as `--records` says.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click
import msgspec

from logberg.cli.connection_options import ClusterConnection, reading_options
from logberg.cli.output import print_json, say
from logberg.cli.partition_names import partition_named
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.client import LogbergClient
from metadata.messages.findings import Explanation
from metadata.messages.log import BatchInWords, RecordInWords

_PIECE = 2_000
"""Records that are asked for at a time."""
_SHOWN = 3
"""So many changes are shown, the newest first."""

Concerns = Callable[[RecordInWords], bool]


class _Cause(NamedTuple):
    """A record about the thing, and the batch that it stands in."""

    batch: BatchInWords
    offset: int
    """The record's own."""
    record: RecordInWords


class _Causes(msgspec.Struct, frozen=True):
    found: list[_Cause]
    down_to: int
    """The log was read back to this offset."""


@click.group("explain", cls=SuggestingGroup)
def command() -> None:
    """Say why a partition has no leader, or why a broker is fenced or may not stop."""


def _depth(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--records",
        "depth",
        type=click.IntRange(min=1),
        default=100_000,
        show_default=True,
        help="How many of the newest records to search for the cause.",
    )(wrapped)


@command.command("partition")
@click.argument("partition")
@_depth
@reading_options
def partition_command(
    *, partition: str, depth: int, cluster: ClusterConnection, output: str
) -> None:
    """Explain a partition, such as orders-0."""
    topic, number = partition_named(partition)

    async def ask(client: LogbergClient) -> tuple[tuple[Explanation, ...], _Causes]:
        reply = await client.partition(topic, number)

        def concerns(record: RecordInWords) -> bool:
            data = record.data
            same = data.get("topicId") == reply.topic_id and data.get("partitionId") == number
            return same and record.type.startswith("PARTITION_")

        return reply.findings, await _causes(client, reply.offset, depth, concerns)

    findings, causes = cluster.ask(ask)
    _show(f"partition {topic}-{number}", "nothing is wrong with it", findings, causes, output)


@command.command("broker")
@click.argument("broker_id", type=int)
@_depth
@reading_options
def broker_command(*, broker_id: int, depth: int, cluster: ClusterConnection, output: str) -> None:
    """Explain why a broker is fenced, or why it may not stop."""

    async def ask(client: LogbergClient) -> tuple[str, tuple[Explanation, ...], _Causes]:
        reply = await client.explain_broker(broker_id)

        def concerns(record: RecordInWords) -> bool:
            data = record.data
            return "BROKER" in record.type and broker_id in (data.get("brokerId"), data.get("id"))

        causes = await _causes(client, reply.offset, depth, concerns)
        return reply.state, reply.findings, causes

    state, findings, causes = cluster.ask(ask)
    _show(f"broker {broker_id}", f"it is {state}", findings, causes, output)


async def _causes(client: LogbergClient, end: int, depth: int, concerns: Concerns) -> _Causes:
    """Read the log backwards for the last changes of a thing."""
    found: list[_Cause] = []
    # A controller may not have the beginning of the log.
    lowest = max((await client.log(end)).log_start, end - depth)
    while end > lowest and len(found) < _SHOWN:
        start = max(lowest, end - _PIECE)
        piece = [batch async for batch in _batches(client, start, end)]
        for batch in reversed(piece):
            for place in reversed(range(len(batch.records))):
                record = batch.records[place]
                if len(found) < _SHOWN and concerns(record):
                    found.append(_Cause(batch, batch.offset + place, record))
        end = start
    return _Causes(found, end)


async def _batches(client: LogbergClient, start: int, end: int) -> Any:
    """Yield the batches that begin from `start` on, and before `end`."""
    at = start
    while at < end:
        reply = await client.log(at)
        for batch in reply.batches:
            # The first one may begin before the offset that was asked for.
            if start <= batch.offset < end or (start == 0 and batch.offset < end):
                yield batch
        if reply.next_offset <= at:
            return
        at = reply.next_offset


def _show(
    what: str, sound: str, findings: tuple[Explanation, ...], causes: _Causes, output: str
) -> None:
    if output == "json":
        print_json(
            {
                "about": what,
                "findings": findings,
                "changes": [{**_facts(cause), "record": cause.record} for cause in causes.found],
                "searchedDownTo": causes.down_to,
            }
        )
        return
    say(f"{what}: {findings[0].says if findings else sound}")
    for finding in findings[1:]:
        say(f"- {finding.says}")
    for line in _lines(causes):
        say(line)


def _lines(causes: _Causes) -> Iterator[str]:
    if not causes.found:
        yield (f"no change of it from offset {causes.down_to} on; look further back with --records")
        return
    yield "last changed by, newest first:"
    for cause in causes.found:
        batch = cause.batch
        reason = f", because {batch.reason}" if batch.reason else ""
        who = f"{batch.principal} as {batch.acted_as}" if batch.acted_as else batch.principal
        yield (
            f"- offset {cause.offset}: {batch.operation} by {who}{reason}: "
            f"{cause.record.type} {_changes(cause.record)}"
        )


def _changes(record: RecordInWords) -> str:
    """Write what a record says, without the names of its thing."""
    skipped = {"topicId", "partitionId", "brokerId", "brokerEpoch", "incarnationId"}
    return ", ".join(
        f"{name}={msgspec.json.encode(value).decode()}"
        for name, value in record.data.items()
        if name not in skipped
    )


def _facts(cause: _Cause) -> dict[str, Any]:
    batch = cause.batch
    return {
        "offset": cause.offset,
        "timestampMs": batch.timestamp_ms,
        "operation": batch.operation,
        "principal": batch.principal,
        "actedAs": batch.acted_as,
        "reason": batch.reason,
    }
