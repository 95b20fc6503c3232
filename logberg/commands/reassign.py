"""`logberg reassign`: partitions move to other brokers (KIP-455).

Rule: one request names up to 50,000 partitions, and more of them are sent one after another. The
controllers write a request in rounds. If the command ends in between, its request goes on; the same
command does the rest, since what is on its way already stays as it is.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click
import msgspec

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    cluster_options,
    reading_options,
)
from logberg.cli.failure import Failure
from logberg.cli.output import note, print_json, say, show, table
from logberg.cli.partition_names import broker_ids, ids, partition_named
from logberg.cli.progress import OnProgress, progress
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from logberg.commands.long_changes import carry_out
from metadata.messages.reassignments import (
    REASSIGNMENTS_PER_REQUEST,
    AlteredReassignment,
    AlterReassignmentsReply,
    PlannedReassignment,
    PlanReply,
    Reassignment,
)

_BYTES = 3_500_000
"""Of one request, about. A controller reads 4 MiB."""
_BYTES_BESIDE_TOPIC = 48
_BYTES_PER_REPLICA = 8
_NAMED = 5
"""So many refused partitions are shown."""


@click.group("reassign", cls=SuggestingGroup)
def command() -> None:
    """Move partitions to other brokers: start, cancel, list, plan."""


class _Row(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    replicas: tuple[int, ...]


class _File(msgspec.Struct, frozen=True):
    """The format of Kafka's own tool; it may hold more fields."""

    partitions: tuple[_Row, ...]


@command.command("start")
@click.argument("moves", nargs=-1)
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON file with the moves, as `reassign plan` and kafka-reassign-partitions write it.",
)
@click.option(
    "--keep-replication-factor",
    is_flag=True,
    help="Refuse a partition whose number of replicas would change.",
)
@change_options
def start(
    *,
    moves: tuple[str, ...],
    file: Path | None,
    keep_replication_factor: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Start reassignments, such as orders-0=1,2,3. They replace those that are running."""
    wanted = [_parsed(text) for text in moves]
    if file is not None:
        wanted += _read(file)
    if not wanted:
        raise click.UsageError("name partitions, such as orders-0=1,2,3, or give --file")
    _alter(cluster, wanted, change, output, "started", may_change=not keep_replication_factor)


@command.command("cancel")
@click.argument("partitions", nargs=-1)
@click.option(
    "--all", "all_of_them", is_flag=True, help="Cancel every reassignment that is running."
)
@change_options
def cancel(
    *,
    partitions: tuple[str, ...],
    all_of_them: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Cancel reassignments. The replicas that they were adding are removed."""
    if bool(partitions) == all_of_them:
        raise click.UsageError("name partitions, such as orders-0, or give --all")
    named = [partition_named(text) for text in partitions]
    if all_of_them:
        running = cluster.ask(lambda client: client.reassignments())
        named = [(row.topic, row.partition) for row in running.partitions]
        if not named:
            say("no reassignment is running")
            return
    wanted = [Reassignment(topic, number) for topic, number in named]
    _alter(cluster, wanted, change, output, "cancelled")


@command.command("list")
@click.option("--topic", help="Only those of this topic.")
@reading_options
def list_reassignments(*, topic: str | None, cluster: ClusterConnection, output: str) -> None:
    """List the reassignments that are running, and which replicas they wait for."""
    reply = cluster.ask(lambda client: client.reassignments(topic=topic))
    if output == "json":
        print_json(without_pages(reply))
        return
    if not reply.partitions:
        say("no reassignment is running")
        return
    show(
        table(
            ["partition", "replicas", "adding", "removing", "isr", "waiting for"],
            [
                (
                    f"{row.topic}-{row.partition}",
                    ids(row.replicas),
                    ids(row.adding_replicas),
                    ids(row.removing_replicas),
                    ids(row.isr),
                    ids(row.waiting_for),
                )
                for row in reply.partitions
            ],
        )
    )


@command.command("plan")
@click.option(
    "--off", "off", required=True, help="Brokers that hold no replica afterwards, such as 3 or 3,4."
)
@cluster_options
def plan(*, off: str, cluster: ClusterConnection, output: str) -> None:
    """Plan moves that take every replica off some brokers. Nothing is written.

    With --output json the plan is a file for `reassign start --file`, and for Kafka's own tool.
    """
    brokers = broker_ids(off)
    reply = cluster.ask(lambda client: client.plan_reassignments(brokers))
    stuck = [row for row in reply.partitions if set(row.replicas) & set(brokers)]
    if output == "json":
        print_json(_as_file(reply))
    elif not reply.partitions:
        say("nothing to move")
    else:
        show(
            table(
                ["partition", "replicas now", "replicas then"],
                [
                    (f"{row.topic}-{row.partition}", ids(row.before), ids(row.replicas))
                    for row in reply.partitions
                ],
            )
        )
    if stuck:
        note(
            f"{len(stuck)} partitions keep a replica on these brokers, because too few other "
            f"brokers are online: {_names(stuck)}"
        )


def _as_file(reply: PlanReply) -> dict[str, object]:
    rows = [
        {"topic": row.topic, "partition": row.partition, "replicas": row.replicas}
        for row in reply.partitions
        if row.replicas != row.before
    ]
    return {"version": 1, "partitions": rows}


def _alter(
    cluster: ClusterConnection,
    wanted: Sequence[Reassignment],
    change: ChangeOptions,
    output: str,
    done: str,
    *,
    may_change: bool = True,
) -> None:
    """Send the requests. Raises Failure if a partition is refused, when all are sent."""
    requests = list(_cut(wanted))
    if change.request_id is not None and len(requests) > 1:
        raise click.UsageError(
            f"--request-id goes with one request, of at most {REASSIGNMENTS_PER_REQUEST} "
            "partitions and 3.5 MB"
        )
    rows: list[AlteredReassignment] = []
    replies: list[AlterReassignmentsReply] = []
    with progress("reassigning") as tell:
        for some in requests:
            told = partial(_tell_of_one, tell, len(rows), len(wanted))
            reply = _ask(cluster, some, change, told, may_change=may_change)
            replies.append(reply)
            rows += reply.partitions
            tell(len(rows), len(wanted))
    if output == "json":
        print_json(replies[0] if len(replies) == 1 else replies)
    elif change.dry_run:
        print_json([record for reply in replies for record in reply.records])
    else:
        fine = sum(row.error is None for row in rows)
        say(f"{done} {fine} of {len(rows)} (offset {replies[-1].offset})")
    refused = [row for row in rows if row.error is not None]
    if refused:
        said = "; ".join(
            f"{row.topic}-{row.partition}: {row.error.message} [{row.error.code}]"
            for row in refused[:_NAMED]
            if row.error is not None
        )
        more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        raise Failure(f"refused {len(refused)} of {len(rows)}: {said}{more}")


def _tell_of_one(tell: OnProgress, before: int, of_all: int, done: int, _total: int) -> None:
    """Tell how far one of several requests is."""
    tell(before + done, of_all)


def _ask(
    cluster: ClusterConnection,
    some: Sequence[Reassignment],
    change: ChangeOptions,
    tell: OnProgress,
    *,
    may_change: bool,
) -> AlterReassignmentsReply:
    return carry_out(
        cluster,
        change,
        lambda client, arguments: client.alter_reassignments(
            *some, allow_replication_factor_change=may_change, **arguments
        ),
        tell,
    )


def _cut(wanted: Sequence[Reassignment]) -> Iterator[Sequence[Reassignment]]:
    """Divide the partitions into requests that a controller reads."""
    start = size = 0
    for at, each in enumerate(wanted):
        own = _BYTES_BESIDE_TOPIC + len(each.topic.encode())
        own += _BYTES_PER_REPLICA * len(each.replicas or ())
        if at - start == REASSIGNMENTS_PER_REQUEST or (at > start and size + own > _BYTES):
            yield wanted[start:at]
            start, size = at, 0
        size += own
    yield wanted[start:]


def _parsed(text: str) -> Reassignment:
    """Read `orders-0=1,2,3`."""
    name, equals, brokers = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r}: give a partition and its brokers: orders-0=1,2,3")
    topic, number = partition_named(name)
    return Reassignment(topic, number, broker_ids(brokers))


def _read(file: Path) -> list[Reassignment]:
    try:
        found = msgspec.json.decode(file.read_bytes(), type=_File)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise Failure(
            f"{file}: {error}; the file is JSON as `logberg reassign plan -o json` prints it"
        ) from None
    return [Reassignment(row.topic, row.partition, row.replicas) for row in found.partitions]


def _names(rows: Sequence[PlannedReassignment]) -> str:
    named = ", ".join(f"{row.topic}-{row.partition}" for row in rows[:_NAMED])
    return named + ("" if len(rows) <= _NAMED else ", …")
