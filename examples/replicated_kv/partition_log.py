"""One replica's log of one partition: a list of writes, kept in a file.

Rule: an entry never changes. A follower whose log has diverged cuts it back and appends what the
leader has. The file is a sequence of MessagePack values; a process that is killed while it writes
leaves a part of the last value, which the next start cuts off.
"""

from pathlib import Path
from typing import NamedTuple

import msgpack


class Entry(NamedTuple):
    """One write, and the leader epoch that it was appended in."""

    epoch: int
    key: str
    value: str


class PartitionLog:
    """The log; an entry's offset is its place in `entries`."""

    def __init__(self, path: Path) -> None:
        """Load the log, or begin an empty one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._path = path
        self.entries: list[Entry] = []
        self._ends: list[int] = []
        """Where in the file each entry ends."""
        with path.open("rb") as file:
            unpacker = msgpack.Unpacker(file)
            for epoch, key, value in unpacker:
                self.entries.append(Entry(epoch, key, value))
                self._ends.append(unpacker.tell())
        self._file = path.open("ab")
        self.cut(len(self.entries))

    @property
    def end(self) -> int:
        """The offset of the next entry."""
        return len(self.entries)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last entry; -1 in an empty log."""
        return self.entries[-1].epoch if self.entries else -1

    def append(self, entries: list[Entry]) -> None:
        """Append, and hand it to the operating system."""
        for entry in entries:
            self._file.write(msgpack.packb(entry))
            self.entries.append(entry)
            self._ends.append(self._file.tell())
        self._file.flush()

    def cut(self, end: int) -> None:
        """Remove the entries from offset `end` on."""
        del self.entries[end:], self._ends[end:]
        self._file.truncate(self._ends[-1] if self._ends else 0)
        self._file.seek(0, 2)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Return the newest epoch up to `epoch` that the log has entries of, and where they end.

        (-1, 0) if there is none. A leader and a follower compare their logs by it (KIP-101).
        """
        for offset in range(len(self.entries), 0, -1):
            found = self.entries[offset - 1].epoch
            if found <= epoch:
                return found, offset
        return -1, 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()
