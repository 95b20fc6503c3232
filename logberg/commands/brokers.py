"""`logberg brokers`."""

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    cluster_options,
    print_change,
    reading_options,
)
from logberg.cli.output import facts, print_json, say, show, styled, table
from logberg.cli.partition_names import broker_ids, ids
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from metadata.messages.brokers import BrokerDescription, DescribeBrokerReply
from metadata.messages.losses import LostPartition


@click.group("brokers", cls=SuggestingGroup)
def command() -> None:
    """List, describe and unregister brokers."""


@command.command("list")
@reading_options
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
@reading_options
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


@command.command("what-if")
@click.option("--lost", help="Brokers that are lost, such as 3 or 3,4.")
@click.option("--rack", help="All brokers of this rack are lost.")
@click.option("--all", "all_changes", is_flag=True, help="List every partition that changes.")
@cluster_options
def what_if(
    *,
    lost: str | None,
    rack: str | None,
    all_changes: bool,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Show what would happen if brokers or a rack were lost. Nothing is written.

    Lists the partitions that would have no leader, or too few replicas in sync to take writes.
    """
    if lost is None and rack is None:
        raise click.UsageError("say which brokers are lost: --lost 3, or --rack b")
    brokers = () if lost is None else broker_ids(lost)
    reply = cluster.ask(
        lambda client: client.what_if_lost(brokers, rack=rack, all_changes=all_changes)
    )
    if output == "json":
        print_json(reply)
        return
    show(
        facts(
            [
                ("lost brokers", ids(reply.brokers)),
                ("partitions with a replica there", reply.touched),
                ("records that would be written", reply.changed + len(reply.broker_changes)),
                ("without a leader", reply.leaderless),
                ("under min.insync.replicas", reply.under_min_isr),
                ("as of offset", f"{reply.offset} (epoch {reply.epoch})"),
            ]
        )
    )
    if reply.partitions:
        show(
            table(
                ["partition", "leader", "then", "isr", "then", "trouble"],
                [
                    (
                        f"{row.topic}-{row.partition}",
                        "none" if row.leader < 0 else row.leader,
                        "none" if row.leader_after < 0 else row.leader_after,
                        ids(row.isr),
                        ids(row.isr_after),
                        _trouble(row),
                    )
                    for row in reply.partitions
                ],
            )
        )


def _trouble(row: LostPartition) -> str:
    if row.leaderless:
        return "no leader"
    return "under min ISR" if row.under_min_isr else "-"


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
