"""`logberg partitions`."""

from collections.abc import Iterator

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.failure import Failure, fail_for
from logberg.cli.output import facts, print_json, say, show, table
from logberg.cli.partition_names import broker_ids, ids, partition_named
from logberg.cli.progress import progress
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from logberg.commands.long_changes import carry_out
from metadata.messages.partitions import ElectionType, ElectLeadersReply, TopicPartitions
from metadata.messages.topic_partitions import NewPartitions


@click.group("partitions", cls=SuggestingGroup)
def command() -> None:
    """List and describe partitions, add some to a topic, and elect leaders."""


@command.command("list")
@click.option("--topic", help="Only those of this topic.")
@click.option("--leaderless", is_flag=True, help="Only those without a leader.")
@click.option(
    "--under-replicated", is_flag=True, help="Only those with replicas that are not in sync."
)
@click.option("--reassigning", is_flag=True, help="Only those that are being reassigned.")
@reading_options
def list_partitions(
    *,
    topic: str | None,
    leaderless: bool,
    under_replicated: bool,
    reassigning: bool,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """List partitions. With several filters, those that fit all of them."""
    reply = cluster.ask(
        lambda client: client.partitions(
            topic=topic,
            leaderless=leaderless,
            under_replicated=under_replicated,
            reassigning=reassigning,
        )
    )
    if output == "json":
        print_json(without_pages(reply))
        return
    if not reply.partitions:
        say("no such partition" if leaderless or under_replicated or reassigning else "none")
        return
    show(
        table(
            ["partition", "leader", "leader epoch", "replicas", "isr", "adding", "removing"],
            [
                (
                    f"{row.topic}-{row.partition}",
                    "none" if row.leader < 0 else row.leader,
                    row.leader_epoch,
                    ids(row.replicas),
                    ids(row.isr),
                    ids(row.adding_replicas),
                    ids(row.removing_replicas),
                )
                for row in reply.partitions
            ],
        )
    )


@command.command("describe")
@click.argument("partition")
@reading_options
def describe(*, partition: str, cluster: ClusterConnection, output: str) -> None:
    """Describe one partition, such as orders-0, and say what is wrong with it."""
    topic, number = partition_named(partition)
    reply = cluster.ask(lambda client: client.partition(topic, number))
    if output == "json":
        print_json(reply)
        return
    found = reply.partition
    show(
        facts(
            [
                ("partition", f"{reply.topic}-{found.partition}"),
                ("topic id", reply.topic_id),
                ("leader", "none" if found.leader < 0 else found.leader),
                ("leader epoch", found.leader_epoch),
                ("partition epoch", found.partition_epoch),
                ("replicas", ids(found.replicas)),
                ("in sync", ids(found.isr)),
                ("eligible leaders", ids(found.elr)),
                ("adding", ids(found.adding_replicas)),
                ("removing", ids(found.removing_replicas)),
                ("recovery", found.leader_recovery_state),
                ("directories", " ".join(found.directories) or "-"),
                ("as of offset", f"{reply.offset} (epoch {reply.epoch})"),
            ]
        )
    )
    for finding in reply.findings:
        say(f"- {finding.says}")


@command.command("add")
@click.argument("topic")
@click.argument("count", type=int)
@click.option(
    "--replicas",
    "lists",
    multiple=True,
    help="Brokers of one added partition, such as 1,2,3. Repeat it for each of them.",
)
@change_options
def add(
    *,
    topic: str,
    count: int,
    lists: tuple[str, ...],
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Add partitions to a topic, so that it has COUNT of them."""
    assignments = tuple(broker_ids(text) for text in lists) if lists else None
    reply = cluster.ask(
        lambda client: client.create_partitions(
            NewPartitions(topic, count, assignments), **change.arguments()
        )
    )
    said = (
        f"added {made.added} partitions to {made.name}: it has {made.count} (offset {reply.offset})"
        for made in reply.topics
        if made.error is None
    )
    print_change(reply, output, *said)
    fail_for((made.name, made.error) for made in reply.topics)


@command.command("elect")
@click.argument("wanted", nargs=-1, metavar="[TOPIC:PARTITION[,PARTITION...]]...")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Elect leaders of all partitions that need an election.",
)
@click.option(
    "--unclean",
    is_flag=True,
    help="Elect any replica where there is no leader. Acknowledged writes may be lost.",
)
@change_options
def elect(
    *,
    wanted: tuple[str, ...],
    everything: bool,
    unclean: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Elect the preferred leaders of partitions: the first replica of each.

    An election needs the replica to be in sync. With --unclean it elects some replica of each
    partition that has no leader.
    """
    if everything == bool(wanted):
        raise click.UsageError("name partitions, such as orders:0,1, or give --all")
    partitions = None if everything else tuple(_parsed(text) for text in wanted)
    kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    with progress("electing") as tell:
        reply = carry_out(
            cluster,
            change,
            lambda client, arguments: client.elect_leaders(kind, partitions, **arguments),
            tell,
        )
    print_change(reply, output, *_elected(reply))
    _fail_for(reply)


def _parsed(text: str) -> TopicPartitions:
    """Read `orders:0,1`."""
    topic, colon, numbers = text.rpartition(":")
    ids = numbers.split(",")
    if not colon or not topic or not all(n.isascii() and n.isdecimal() for n in ids):
        raise click.BadParameter(f"{text!r}: give a topic and its partitions, such as orders:0,1")
    return TopicPartitions(topic, tuple(map(int, ids)))


def _elected(reply: ElectLeadersReply) -> Iterator[str]:
    shown = 0
    for topic in reply.replica_election_results:
        for partition in topic.partition_result:
            if partition.error is None:
                shown += 1
                yield f"{topic.topic}-{partition.partition_id}: broker {partition.leader_id} leads"
    more = f", {shown} of them shown" if shown < reply.elected else ""
    yield f"{reply.elected} elected, {reply.failed} not{more} (offset {reply.offset})"


def _fail_for(reply: ElectLeadersReply) -> None:
    """Exit 1 when an election failed, with every reason."""
    fail_for(
        (f"{topic.topic}-{partition.partition_id}", partition.error)
        for topic in reply.replica_election_results
        for partition in topic.partition_result
    )
    if reply.failed:
        raise Failure(f"{reply.failed} partitions could not be given the leader that was asked for")
