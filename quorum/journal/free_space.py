"""Whether the disk has room for the journal: the free space against a reserve.

Rule: below the reserve a node refuses proposals now, rather than stop in the middle of one.
"""

from runtime.disk.interface import Disk

_MIB = 1024 * 1024


class FreeSpace:
    """The free space of a disk, as it was last looked up."""

    def __init__(self, disk: Disk, reserve_bytes: int) -> None:
        self._disk = disk
        self._reserve_bytes = reserve_bytes
        self._free_bytes = disk.free_bytes()

    def look(self) -> None:
        """Look up the free space."""
        self._free_bytes = self._disk.free_bytes()

    @property
    def lack(self) -> str:
        """The lack of room, as part of a sentence; empty while there is enough."""
        if self._free_bytes >= self._reserve_bytes:
            return ""
        free, reserve = self._free_bytes // _MIB, self._reserve_bytes // _MIB
        return f"the disk is almost full: {free} MiB are free, {reserve} MiB are kept in reserve"
