"""`logberg log archive`: what of a log is in an archive, whether it is sound there, and `run`."""

from pathlib import Path

import click
import msgspec

from audit.places.archived_disk import (
    ARCHIVE_VARIABLE,
    archived_content,
    place_of,
    receipts_of,
)
from audit.places.remote import without_secrets
from audit.places.replicas import Replica, open_all
from audit.places.segment_archive import open_archive
from ledger.receipts import Receipt
from ledger.segments import LOG_FOLDER, segment_bases
from logberg.cli.default_folder import default_folder
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say, show, table
from logberg.cli.progress import progress_of_steps
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.commands.audit.failures import failing
from logberg.commands.log_archive_run import run_archive

_FOLDERS = click.argument("folders", type=click.Path(path_type=Path), nargs=-1)
_ARCHIVE = click.option(
    "--archive",
    "where",
    metavar="WHERE",
    envvar=ARCHIVE_VARIABLE,
    help="The archive's folder or s3:// URL, if it is not where the node left it.",
)


class Archived(msgspec.Struct, rename="camel", frozen=True):
    """What a node's receipts say."""

    folder: str
    place: str
    segments: int
    bytes: int
    from_offset: int
    to_offset: int
    local_from: int | None
    """The first offset that is in the folder; None: no segment is."""


@click.group("archive", cls=SuggestingGroup)
def archive() -> None:
    """Show, verify and hasten what controllers move to the archive.

    FOLDERS are controllers' folders, or that of `logberg up`. `state` and `verify` change nothing,
    and the nodes may be running.
    """


archive.add_command(run_archive)


@archive.command("state")
@_FOLDERS
@_ARCHIVE
@output_option
def show_state(folders: tuple[Path, ...], where: str | None, output: str) -> None:
    """Show which part of each log is in the archive. The archive is not asked."""
    with failing():
        found = [_archived(replica, where) for replica in _replicas(folders)]
    if output == "json":
        print_json(found)
        return
    show(
        table(
            ["log", "archive", "segments", "bytes", "from offset", "to offset", "here from"],
            [
                (
                    each.folder,
                    each.place or "-",
                    each.segments,
                    each.bytes,
                    each.from_offset,
                    each.to_offset,
                    "-" if each.local_from is None else each.local_from,
                )
                for each in found
            ],
        )
    )


@archive.command("verify")
@_FOLDERS
@_ARCHIVE
@output_option
def verify(folders: tuple[Path, ...], where: str | None, output: str) -> None:
    """Read all that is in the archive, and compare it with what the nodes moved there.

    Every byte is read. Exit 1 at the first that is wrong, or if the archive can't be read.
    """
    with failing(), progress_of_steps("verifying") as on_step:
        replicas = _replicas(folders)
        found = [_archived(replica, where) for replica in replicas]
        wanted: dict[tuple[str, int], tuple[str, Receipt]] = {}
        for replica in replicas:
            for receipt in receipts_of(replica.disk):
                key = (receipt.digest.hex(), receipt.base_offset)
                wanted.setdefault(key, (where or place_of(replica.disk), receipt))
        total, done = sum(receipt.size for _, receipt in wanted.values()), 0
        places = {place: open_archive(place) for place, _ in wanted.values() if place}
        for place, receipt in wanted.values():
            if not place:
                raise Failure("nothing says where the archive is: name it with --archive")
            archived_content(places[place], without_secrets(place), receipt)
            done += receipt.size
            on_step("verifying", done, total)
    if output == "json":
        print_json({"ok": True, "segments": len(wanted), "bytes": total, "nodes": found})
        return
    say(f"sound: {len(wanted)} segments, {total:,} bytes")


def _replicas(folders: tuple[Path, ...]) -> list[Replica]:
    return open_all(str(folder) for folder in folders or (default_folder(),))


def _archived(replica: Replica, where: str | None) -> Archived:
    receipts = receipts_of(replica.disk)
    local = segment_bases(replica.disk.list(LOG_FOLDER))
    place = where or place_of(replica.disk)
    return Archived(
        folder=replica.location,
        place=without_secrets(place) if "://" in place else place,
        segments=len(receipts),
        bytes=sum(receipt.size for receipt in receipts),
        from_offset=receipts[0].base_offset if receipts else 0,
        to_offset=receipts[-1].end.log_end if receipts else 0,
        local_from=local[0] if local else None,
    )
