"""Gaps: history that this node has not fetched back yet, each named by a marker file.

Rule: a gap that a marker names is backfill in progress; any other is damage. The marker's name
says all (`log/<from>-<to>.gap`, offsets of 20 digits), so there is no content to damage.
"""

import re
from typing import NamedTuple

from ledger.segments import LOG_FOLDER
from runtime.disk import Disk

_NAME = re.compile(r"([0-9]{20})-([0-9]{20})\.gap")


class Gap(NamedTuple):
    """Offsets that are not here: from `start` to before `end`."""

    start: int
    end: int

    @property
    def path(self) -> str:
        """The marker's name, with folder."""
        return f"{LOG_FOLDER}/{self.start:020d}-{self.end:020d}.gap"


def list_gaps(disk: Disk) -> list[Gap]:
    """Return the gaps that markers name, ascending."""
    found = (_NAME.fullmatch(name) for name in disk.list(LOG_FOLDER))
    return sorted(Gap(int(match[1]), int(match[2])) for match in found if match)


def change_gap(disk: Disk, old: Gap | None, new: Gap | None) -> None:
    """Replace a marker by another, durably; at no moment is a gap without a marker."""
    if old == new:
        return
    if new is not None:
        disk.replace(new.path, b"")
    if old is not None:
        disk.unlink(old.path)
        disk.sync_folder(LOG_FOLDER)
