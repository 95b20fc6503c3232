"""The backups of one place: made, listed, and thinned out.

Rule: a backup counts as good when its bytes were read back from the place and verified. The newest
`keep` stay. Backups of another cluster, and files that can't be read, are never removed. Nothing is
removed unless a good one was just made.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from logberg.backups.backup_format import BackupError, BackupHeader
from logberg.backups.making import WantedBackup, make_backup
from logberg.backups.places import BackupName, BackupPlace
from logberg.backups.reading import BackupFacts, read_backup_header, verify_backup
from logberg.backups.sources import BackupSource

OnStep = Callable[[str, int, int], None]


class Listed(msgspec.Struct, frozen=True):
    """A backup in a place, by its header only."""

    name: str
    size: int
    header: BackupHeader | None
    problem: str = ""
    """Why the header can't be read."""


class Made(msgspec.Struct, frozen=True):
    """A backup that was made and read back."""

    name: str
    location: str
    facts: BackupFacts


def create_backup(
    source: BackupSource, place: BackupPlace, wanted: WantedBackup, on_step: OnStep
) -> Made:
    """Make a backup in a place, read it back and verify it.

    What can't be verified is removed. Raises BackupError, SourceDamagedError, OSError.
    """
    name = str(BackupName(wanted.made_at_ms, source.end.log_end))
    if name in place.names():
        raise BackupError(f"{place.location} has a backup {name} already")
    writer = place.create(name)
    try:
        written = make_backup(
            source, writer, wanted, lambda done, total: on_step("backing up", done, total)
        )
        writer.close()
    except BaseException:
        writer.give_up()
        raise
    try:
        facts = _read_back(place, name, written, on_step)
    except BackupError:
        with suppress(OSError):
            place.remove(name)
        raise
    return Made(name, place.open(name).location, facts)


def _read_back(place: BackupPlace, name: str, written: BackupFacts, on_step: OnStep) -> BackupFacts:
    found = verify_backup(
        place.open(name), lambda done, total: on_step("reading it back", done, total)
    )
    if found != written:
        raise BackupError(f"{place.location}: {name} is not what was written")
    return found


def list_backups(place: BackupPlace) -> list[Listed]:
    """Return the backups of a place, the oldest first. Raises OSError."""
    found = []
    for name in place.names():
        file = place.open(name)
        # Another controller may be thinning out the same place.
        with suppress(FileNotFoundError):
            try:
                found.append(Listed(name, file.size(), read_backup_header(file)))
            except BackupError as error:
                found.append(Listed(name, file.size(), None, str(error)))
    return found


def is_whole(header: BackupHeader) -> bool:
    """Tell whether a cluster can be restored from a backup, and not only a part of its history."""
    return header.start.log_end == 0 or bool(header.checkpoint)


def young_enough(
    listed: Sequence[Listed], cluster_id: str, now_ms: int, older_than_s: float
) -> Listed | None:
    """Return the newest whole backup of a cluster that is not so old yet; None: one is due.

    One that is dated far in the future is not young: the clock of whoever made it was wrong, and
    nobody knows its age.
    """
    young = [
        each
        for each in listed
        if (header := each.header) is not None
        and header.cluster_id == cluster_id
        and is_whole(header)
        and abs(now_ms - header.made_at_ms) < older_than_s * 1000
    ]
    return young[-1] if young else None


def thin_out(place: BackupPlace, cluster_id: str, keep: int, now_ms: int) -> list[str]:
    """Remove all but the newest `keep` whole backups of a cluster; return their names.

    A backup of a part of the ledger counts as none and stays. So does one that is dated later than
    `now_ms`: a clock was wrong, and better ones would have to go for it. If each of the newest has
    lost the beginning of the history, the newest one that reaches furthest back stays, too.

    Raises OSError.
    """
    own: list[tuple[int, str]] = [
        (header.start.log_end, each.name)
        for each in list_backups(place)
        if (header := each.header) is not None
        and header.cluster_id == cluster_id
        and is_whole(header)
        and header.made_at_ms <= now_ms
    ]
    old, kept = own[:-keep], own[-keep:]
    furthest = min((start for start, _ in own), default=0)
    if old and furthest < min(start for start, _ in kept):
        old.remove(max(one for one in old if one[0] == furthest))
    for _, name in old:
        with suppress(FileNotFoundError):
            place.remove(name)
    return [name for _, name in old]
