"""`logberg partitions`."""

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
)
from logberg.cli.failure import Failure
from logberg.cli.output import print_json, say
from logberg.cli.suggesting_group import SuggestingGroup
from metadata.messages.partitions import ElectionType, ElectLeadersReply, TopicPartitions


@click.group("partitions", cls=SuggestingGroup)
def command() -> None:
    """Elect leaders of partitions."""


@command.command("elect")
@click.argument("wanted", nargs=-1, metavar="[TOPIC:PARTITION[,PARTITION...]]...")
@click.option("--all", "everything", is_flag=True, help="All partitions that need an election.")
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
    reply = cluster.ask(
        lambda client: client.elect_leaders(
            kind,
            partitions,
            reason=change.reason,
            request_id=change.request_id,
            dry_run=change.dry_run,
        )
    )
    if output == "json":
        print_json(reply)
    elif reply.dry_run:
        print_json(reply.records)
    else:
        _show_elected(reply)
    _fail_for(reply)


def _parsed(text: str) -> TopicPartitions:
    """Read `orders:0,1`."""
    topic, colon, numbers = text.rpartition(":")
    ids = numbers.split(",")
    if not colon or not topic or not all(n.isascii() and n.isdecimal() for n in ids):
        raise click.BadParameter(f"{text!r}: give a topic and its partitions, such as orders:0,1")
    return TopicPartitions(topic, tuple(map(int, ids)))


def _show_elected(reply: ElectLeadersReply) -> None:
    shown = 0
    for topic in reply.replica_election_results:
        for partition in topic.partition_result:
            if partition.error is None:
                shown += 1
                say(f"{topic.topic}-{partition.partition_id}: broker {partition.leader_id} leads")
    more = f", {shown} of them shown" if shown < reply.elected else ""
    say(f"{reply.elected} elected, {reply.failed} not{more} (offset {reply.offset})")


def _fail_for(reply: ElectLeadersReply) -> None:
    """Exit 1 when an election failed, with every reason."""
    refused = [
        f"{topic.topic}-{partition.partition_id}: {partition.error.message} "
        f"[{partition.error.code}]"
        for topic in reply.replica_election_results
        for partition in topic.partition_result
        if partition.error is not None
    ]
    if refused:
        raise Failure("; ".join(refused))
    if reply.failed:
        raise Failure(f"{reply.failed} partitions could not be given the leader that was asked for")
