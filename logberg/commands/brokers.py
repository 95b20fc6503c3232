"""`logberg brokers`."""

from typing import Any

import click

from logberg.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    cluster_options,
)
from logberg.output import facts, print_json, say, show, styled, table
from logberg.paged_lists import all_pages
from logberg.suggesting_group import SuggestingGroup


@click.group("brokers", cls=SuggestingGroup)
def command() -> None:
    """List, describe and unregister brokers."""


@command.command("list")
@cluster_options
def list_brokers(*, cluster: ClusterConnection, output: str) -> None:
    """List the brokers that are registered."""
    reply = cluster.ask(lambda client: all_pages(client, "/v1/brokers", "brokers"))
    if output == "json":
        print_json(reply)
        return
    if not reply["brokers"]:
        say("no broker is registered")
        return
    show(
        table(
            ["broker", "state", "broker epoch", "rack", "leads", "replicas", "listeners"],
            [
                (
                    broker["brokerId"],
                    styled(broker["state"]),
                    broker["brokerEpoch"],
                    broker["rack"] or "-",
                    broker["leaders"],
                    broker["replicas"],
                    _listeners(broker),
                )
                for broker in reply["brokers"]
            ],
        )
    )


@command.command("describe")
@click.argument("broker_id", type=int)
@cluster_options
def describe(*, broker_id: int, cluster: ClusterConnection, output: str) -> None:
    """Describe one broker."""
    reply = cluster.ask(lambda client: client.get(f"/v1/brokers/{broker_id}"))
    if output == "json":
        print_json(reply)
        return
    broker = reply["broker"]
    contact = broker.get("lastContactMs")
    show(
        facts(
            [
                ("broker", broker["brokerId"]),
                ("state", styled(broker["state"])),
                ("broker epoch", broker["brokerEpoch"]),
                ("incarnation", broker["incarnationId"]),
                ("in controlled shutdown", broker["inControlledShutdown"]),
                ("rack", broker["rack"] or "-"),
                ("listeners", _listeners(broker)),
                ("leads", f"{broker['leaders']} of {broker['replicas']} replicas"),
                ("last heard", "unknown" if contact is None else f"{contact} ms ago"),
                ("applied", broker.get("appliedOffset")),
                ("as of offset", f"{reply['offset']} (epoch {reply['epoch']})"),
            ]
        )
    )


@command.command("unregister")
@click.argument("broker_id", type=int)
@click.option(
    "--force",
    is_flag=True,
    help="Also one that is online, or that holds the last in-sync replica of a partition.",
)
@change_options
def unregister(
    *, broker_id: int, force: bool, change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """Forget a broker that will not come back.

    A broker that is online, or that holds the last in-sync replica of a partition, is refused
    without --force; the error names what would be lost.
    """
    flags = {"dryRun": change.dry_run, "force": force}
    query = {name: "true" for name, given in flags.items() if given}
    reply = cluster.ask(
        lambda client: change.make(client, "DELETE", f"/v1/brokers/{broker_id}", query=query)
    )
    if output == "json":
        print_json(reply)
    elif reply["dryRun"]:
        print_json(reply["records"])
    else:
        say(f"broker {broker_id} is forgotten (offset {reply['offset']})")


def _listeners(broker: dict[str, Any]) -> str:
    return ", ".join(f"{e['name']}://{e['host']}:{e['port']}" for e in broker["endpoints"]) or "-"
