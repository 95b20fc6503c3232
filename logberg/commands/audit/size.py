"""`logberg audit size`: how large a log is, what makes it grow, and when its disk is full."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from audit.places.remote import is_url
from audit.places.replicas import Replica, one_replica
from audit.questions.growth import Growth, Share, growth_of
from audit.reading.dump import utc
from ledger.batch import Batch
from ledger.reader import LedgerReader
from logberg.cli.output import facts, output_option, print_json, show, table
from logberg.cli.progress import OnProgress, progress
from logberg.commands.audit.failures import failing, print_notes, where_argument
from snapshots.checkpoint import FOLDER
from snapshots.store import list_checkpoints

_SHOWN: Final = 10


@click.command("size")
@where_argument
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    default=7.0,
    show_default=True,
    help="Compute the rate from so many days before the log's last change.",
)
@click.option(
    "--free",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="The room that is left for the log. Default: that of WHERE's disk, if it is a folder.",
)
@output_option
def command(where: str, days: float, free: int | None, output: str) -> None:
    """Show the bytes of a log by day, by operation and by type of record, and its rate.

    Bytes a day times the days that you plan for is the room that the log needs; checkpoints and the
    journal have a size of their own that doesn't grow with time.
    """
    with failing():
        replica = one_replica(where)
        reader = replica.reader()
        with progress("reading the log") as on_progress:
            found = growth_of(_told(reader, on_progress), days)
        left = free if free is not None else _free(replica, where)
        kept = _checkpoint_bytes(replica)
    print_notes(reader.notes)
    if output == "json":
        print_json(_in_json(found, kept, left))
        return
    _show(found, kept, left)


def _told(reader: LedgerReader, on_progress: OnProgress) -> Iterator[Batch]:
    for number, batch in enumerate(reader.batches()):
        if number % 4096 == 0:
            on_progress(batch.header.base_offset - reader.log_start, reader.log_end)
        yield batch


def _free(replica: Replica, where: str) -> int | None:
    if is_url(where) or not Path(replica.location).is_dir():
        return None
    return shutil.disk_usage(replica.location).free


def _checkpoint_bytes(replica: Replica) -> int:
    disk = replica.disk
    return sum(disk.size(f"{FOLDER}/{each.name}") for each in list_checkpoints(disk))


def _show(found: Growth, kept: int, left: int | None) -> None:
    until = None if left is None else found.days_until(left)
    show(
        facts(
            [
                ("log", f"{found.bytes:,} bytes, {found.records:,} records"),
                ("from", f"{utc(found.first_ms)} to {utc(found.last_ms)}"),
                ("checkpoints", f"{kept:,} bytes"),
                ("bytes a day", f"{found.bytes_a_day:,.0f}, over {found.rate_days:.1f} days"),
                ("room left", "not known" if left is None else f"{left:,} bytes"),
                ("days until full", "not known" if until is None else f"{until:,.0f}"),
            ]
        )
    )
    for title, shares in (
        ("day", found.days[-_SHOWN:]),
        ("operation", found.operations[:_SHOWN]),
        ("type of record", found.types[:_SHOWN]),
    ):
        rows = [(s.name, s.bytes, _percent(s, found), s.records, s.batches) for s in shares]
        show("", table([title, "bytes", "share", "records", "batches"], rows))


def _percent(share: Share, found: Growth) -> str:
    return f"{100 * share.bytes / found.bytes:.1f} %" if found.bytes else "-"


def _in_json(found: Growth, kept: int, left: int | None) -> dict[str, Any]:
    return {
        "bytes": found.bytes,
        "records": found.records,
        "batches": found.batches,
        "firstMs": found.first_ms,
        "lastMs": found.last_ms,
        "checkpointBytes": kept,
        "bytesADay": found.bytes_a_day,
        "rateDays": found.rate_days,
        "freeBytes": left,
        "daysUntilFull": None if left is None else found.days_until(left),
        "days": found.days,
        "operations": found.operations,
        "types": found.types,
    }
