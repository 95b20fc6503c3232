"""A second, independent record of what was durable.

Rule: after each group sync, `journal/synced` gets the durable position, sixteen bytes each time,
unsynced (an orderly stop syncs the file). An entry with a good checksum was true when it was
written and stays true. So a torn, stale or lost file can only say too little. The file reveals a
segment that was cut or damaged behind the last synced position that the frames carry.
"""

import struct

import google_crc32c

from quorum.journal.identity import FOLDER, JournalIdentity
from runtime.disk.interface import Disk

NAME = f"{FOLDER}/synced"
_ENTRY = struct.Struct("<Q4xI")
_CUT_AT_BYTES = 64 * 1024


class SyncedNotes:
    """Appends durable positions."""

    def __init__(self, disk: Disk, identity: JournalIdentity, durable_position: int) -> None:
        self._seed = identity.seed(0)
        self._file = disk.open(NAME)
        self._file.truncate(0)
        self._size = 0
        self.note(durable_position)

    def note(self, position: int) -> None:
        """Write that everything before `position` is durable. Raises OSError."""
        if self._size >= _CUT_AT_BYTES:
            self._file.truncate(0)
            self._size = 0
        self._file.append(_encode(position, self._seed))
        self._size += _ENTRY.size

    def sync(self) -> None:
        """Block until the last note is durable."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def noted_position(disk: Disk, identity: JournalIdentity) -> int:
    """Return the highest position that the file proves durable; 0 when it proves none."""
    if not disk.exists(NAME):
        return 0
    data, seed, highest = disk.read(NAME), identity.seed(0), 0
    for offset in range(0, len(data) - _ENTRY.size + 1, _ENTRY.size):
        (position, _) = _ENTRY.unpack_from(data, offset)
        if data[offset : offset + _ENTRY.size] == _encode(position, seed):
            highest = max(highest, position)
    return highest


def _encode(position: int, seed: int) -> bytes:
    crc = google_crc32c.extend(seed, position.to_bytes(8, "little"))
    return _ENTRY.pack(position, crc)
