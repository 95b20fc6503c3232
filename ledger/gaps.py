"""Gaps: history that this node has not fetched back yet. A marker file names each gap.

Rule: a gap with a marker is backfill in progress; a gap without one is damage. The marker's name
holds everything (`log/<from>-<to>.gap`, offsets of 20 digits). The file is empty, so it has no
content that could be damaged.
"""

import re
from typing import NamedTuple

from ledger.segments import LOG_FOLDER
from runtime.disk.interface import Disk

_NAME = re.compile(r"([0-9]{20})-([0-9]{20})\.gap")


class Gap(NamedTuple):
    """Offsets that this node doesn't have: from `start` to before `end`."""

    start: int
    end: int

    @property
    def path(self) -> str:
        """The marker's path."""
        return f"{LOG_FOLDER}/{self.start:020d}-{self.end:020d}.gap"


def list_gaps(disk: Disk) -> list[Gap]:
    """Return the gaps that have markers, ascending."""
    found = (_NAME.fullmatch(name) for name in disk.list(LOG_FOLDER))
    return sorted(Gap(int(match[1]), int(match[2])) for match in found if match)


def change_gap(disk: Disk, old: Gap | None, new: Gap | None) -> None:
    """Replace a marker by another, durably. The gap has a marker at every moment."""
    if old == new:
        return
    if new is not None:
        disk.replace(new.path, b"")
    if old is not None:
        disk.unlink(old.path)
        disk.sync_folder(LOG_FOLDER)
