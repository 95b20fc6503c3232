"""`logberg brokers`."""

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    cluster_options,
    print_change,
)
from logberg.cli.output import facts, print_json, say, show, styled, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from metadata.messages.brokers import BrokerDescription, DescribeBrokerReply


@click.group("brokers", cls=SuggestingGroup)
def command() -> None:
    """List, describe and unregister brokers."""


@command.command("list")
@cluster_options
def list_brokers(*, cluster: ClusterConnection, output: str) -> None:
    """List the brokers that are registered."""
    reply = cluster.ask(lambda client: client.brokers())
    if output == "json":
        print_json(without_pages(reply))
        return
    if not reply.brokers:
        say("no broker is registered")
        return
    show(
        table(
            ["broker", "state", "broker epoch", "rack", "leads", "replicas", "listeners"],
            [
                (
                    broker.broker_id,
                    styled(broker.state),
                    broker.broker_epoch,
                    broker.rack or "-",
                    broker.leaders,
                    broker.replicas,
                    _listeners(broker),
                )
                for broker in reply.brokers
            ],
        )
    )


@command.command("describe")
@click.argument("broker_id", type=int)
@cluster_options
def describe(*, broker_id: int, cluster: ClusterConnection, output: str) -> None:
    """Describe one broker."""
    reply = cluster.ask(lambda client: client.get(f"/v1/brokers/{broker_id}", DescribeBrokerReply))
    if output == "json":
        print_json(reply)
        return
    broker = reply.broker
    contact = broker.last_contact_ms
    show(
        facts(
            [
                ("broker", broker.broker_id),
                ("state", styled(broker.state)),
                ("broker epoch", broker.broker_epoch),
                ("incarnation", broker.incarnation_id),
                ("in controlled shutdown", broker.in_controlled_shutdown),
                ("rack", broker.rack or "-"),
                ("listeners", _listeners(broker)),
                ("leads", f"{broker.leaders} of {broker.replicas} replicas"),
                ("last heard", "unknown" if contact is None else f"{contact} ms ago"),
                ("applied", broker.applied_offset),
                ("as of offset", f"{reply.offset} (epoch {reply.epoch})"),
            ]
        )
    )


@command.command("unregister")
@click.argument("broker_id", type=int)
@click.option(
    "--force",
    is_flag=True,
    help="Also if the broker is online, or holds the last in-sync replica of a partition.",
)
@change_options
def unregister(
    *, broker_id: int, force: bool, change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """Remove the registration of a broker that will not come back.

    Without --force, a broker that is online or that holds the last in-sync replica of a
    partition can't be unregistered. The error names what would be lost.
    """
    reply = cluster.ask(
        lambda client: client.unregister_broker(broker_id, force=force, **change.arguments())
    )
    print_change(reply, output, f"broker {broker_id} is unregistered (offset {reply.offset})")


def _listeners(broker: BrokerDescription) -> str:
    return ", ".join(f"{e.name}://{e.host}:{e.port}" for e in broker.endpoints) or "-"
