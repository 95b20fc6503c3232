"""The content of a simulated disk: what was written, and what a loss of power leaves of it.

Rule: a platter outlives processes. A kill loses nothing that was written. A loss of power keeps
everything that was synced. The seed decides what it keeps of the rest:

- Each 512-byte sector of unsynced bytes is kept, or not written (old bytes or zeros), or garbled.
  The file's length is any value between the durable length and the written one.
- Each creation, rename and unlink since the folder's last sync is kept or undone. If one is undone,
  all later ones of the same name are undone too.

Synced bytes stay, even in a sector that also has unsynced bytes. A drive writes whole sectors, and
the synced part is rewritten with the same bytes.
"""

from random import Random
from typing import NamedTuple

SECTOR = 512
_SALVAGE = ("all", "none", "prefix", "mixed", "mixed")


class Inode:
    """The bytes of one file.

    `content` is what a process reads, `durable` what the medium holds. Between them are the changes
    that are not synced yet.
    """

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = bytearray()
        self._pending: list[tuple[int, bytes | None]] = []
        self._retired = 0

    @property
    def changes(self) -> int:
        """The number of changes so far. A sync that starts now must cover all of them."""
        return self._retired + len(self._pending)

    @property
    def synced(self) -> bool:
        """True if all changes are durable."""
        return not self._pending

    def append(self, data: bytes) -> None:
        """Write at the end. The change is pending until a sync."""
        self._pending.append((len(self.content), data))
        self.content += data

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes. The change is pending until a sync."""
        if size < len(self.content):
            self._pending.append((size, None))
            del self.content[size:]

    def sync(self, upto: int) -> None:
        """Make the changes before number `upto` durable."""
        for position, data in self._take(upto):
            _apply(self.durable, position, data)

    def fail_sync(self, upto: int) -> None:
        """Lose the changes before number `upto`: the kernel marks their pages clean.

        A process still reads them, until `forget_cache`.
        """
        self._take(upto)

    def forget_cache(self) -> None:
        """The process has ended: from now on, what a failed sync has lost is not read any more."""
        self.content = bytearray(self.durable)
        for position, data in self._pending:
            _apply(self.content, position, data)

    def lose_power(self, random: Random) -> None:
        """Draw what is left of the pending changes."""
        if self._pending:
            self.durable = self._salvage(random)
            self._retired += len(self._pending)
            self._pending.clear()
        self.content = bytearray(self.durable)

    def overwrite(self, position: int, data: bytes) -> None:
        """Replace bytes wherever they are: in the content, durable, or pending.

        This is damage, not a write.
        """
        for whole in (self.content, self.durable):
            piece = data[: max(len(whole) - position, 0)]
            whole[position : position + len(piece)] = piece
        for number, (start, written) in enumerate(self._pending):
            low, high = max(start, position), min(start + len(written or b""), position + len(data))
            if written is not None and low < high:
                changed = bytearray(written)
                changed[low - start : high - start] = data[low - position : high - position]
                self._pending[number] = (start, bytes(changed))

    def _take(self, upto: int) -> list[tuple[int, bytes | None]]:
        count = max(upto - self._retired, 0)
        taken = self._pending[:count]
        del self._pending[:count]
        self._retired += len(taken)
        return taken

    def _salvage(self, random: Random) -> bytearray:
        intact = min(position for position, _ in self._pending)
        low, high = self._lengths()
        how = random.choice(_SALVAGE)
        if how == "all":
            return bytearray(self.content)
        if how == "none":
            return bytearray(self.durable)
        if how == "prefix":
            end = random.randint(intact, max(len(self.content), intact))
            return self.durable[:intact] + self.content[intact:end]
        length = random.choice((low, high, len(self.content), random.randint(low, high)))
        keep = random.choice((0.2, 0.5, 0.9))
        result = self.durable[:intact]
        while len(result) < length:
            start = len(result)
            end = min((start // SECTOR + 1) * SECTOR, length)
            result += self._salvage_sector(start, end, keep, random)
        return result[:length]

    def _salvage_sector(self, start: int, end: int, keep: float, random: Random) -> bytes:
        old = _piece(self.durable, start, end)
        written = bytes(self.content[start:end])
        draw = random.random()
        if not written or draw >= keep + 0.1:
            return old
        if draw < keep:
            return written + old[len(written) :]
        return random.randbytes(len(written)) + old[len(written) :]

    def _lengths(self) -> tuple[int, int]:
        low = high = length = len(self.durable)
        for position, data in self._pending:
            length = position if data is None else position + len(data)
            low, high = min(low, length), max(high, length)
        return low, high

    def copy(self) -> "Inode":
        """Return a copy whose bytes are all durable."""
        twin = Inode()
        twin.content = bytearray(self.content)
        twin.durable = bytearray(self.content)
        return twin


class _NameChange(NamedTuple):
    """A creation, rename or unlink that a loss of power may undo."""

    source: str | None
    """The name that is removed; None for a creation."""
    target: str | None
    """The new name of the inode; None for an unlink."""
    inode: Inode
    source_synced: bool = False
    """True if the source's folder was synced, but not yet the target's."""


class Platter:
    """The files of one node. They outlive its processes."""

    def __init__(self, random: Random) -> None:
        self.names: dict[str, Inode] = {}
        self.folders: list[str] = [""]
        self._durable_names: dict[str, Inode] = {}
        self._pending: list[_NameChange] = []
        self._random = random

    def used_bytes(self) -> int:
        """Return the number of bytes in all files."""
        return sum(len(inode.content) for inode in self.names.values())

    def create(self, name: str) -> Inode:
        """Make an empty file."""
        inode = self.names[name] = Inode()
        self._pending.append(_NameChange(None, name, inode))
        return inode

    def rename(self, source: str, target: str) -> None:
        """Rename a file. A file that had the new name is removed."""
        inode = self.names.pop(source)
        self.names[target] = inode
        self._pending.append(_NameChange(source, target, inode))

    def unlink(self, name: str) -> None:
        """Remove a name."""
        self._pending.append(_NameChange(name, None, self.names.pop(name)))

    def sync_folder(self, folder: str) -> None:
        """Make the names in a folder durable.

        After a rename from another folder, the old name stays durable until that folder is synced
        too. The file itself is not lost, unless another file gets the old name before that.
        """
        left: list[_NameChange] = []
        for change in self._pending:
            source, target, inode, source_synced = change
            source_synced = source_synced or (source is not None and folder_of(source) == folder)
            if target is not None and folder_of(target) != folder:
                left.append(change._replace(source_synced=source_synced))
                continue
            if target is not None:
                self._durable_names[target] = inode
            if source is not None and source_synced:
                self._drop_unless_back(source, inode)
            elif source is not None:
                left.append(_NameChange(source, None, inode))
        self._pending = left

    def forget_caches(self) -> None:
        """The process has ended: what failed syncs have lost is not read any more."""
        for inode in self.names.values():
            inode.forget_cache()

    def lose_power(self) -> None:
        """Draw what is left of everything that was not synced."""
        keep = self._random.choice((0.0, 0.5, 1.0))
        undone: set[str | None] = set()
        for source, target, inode, source_synced in self._pending:
            # The changes of one name are kept up to some point in time, as file systems with a
            # journal do. So a change after an undone one is undone too.
            if self._random.random() >= keep or not undone.isdisjoint({source, target} - {None}):
                undone |= {source, target}
                continue
            if target is not None:
                self._durable_names[target] = inode
            if source is not None and source_synced:
                self._drop_unless_back(source, inode)
            elif source is not None:
                _drop(self._durable_names, source, inode)
        self._pending.clear()
        self.names = dict(self._durable_names)
        for name in sorted(self.names):
            self.names[name].lose_power(self._random)

    def flip_bit(self, name: str, position: int, bit: int = 0) -> None:
        """Invert one bit of a stored file."""
        inode = self.names[name]
        for data in (inode.content, inode.durable):
            if position < len(data):
                data[position] ^= 1 << bit

    def overwrite(self, name: str, position: int, data: bytes) -> None:
        """Replace bytes durably, without a write; even while a process uses the file."""
        self.names[name].overwrite(position, data)

    def durable_files(self) -> dict[str, bytes]:
        """Return what every loss of power leaves: the durable bytes under durable names."""
        names = self._durable_names
        return {name: bytes(names[name].durable) for name in sorted(names)}

    def put(self, name: str, data: bytes) -> None:
        """Store a whole file durably, as an operator could do behind the node's back."""
        inode = Inode()
        inode.content = bytearray(data)
        inode.durable = bytearray(data)
        self._settle(name)
        self.names[name] = self._durable_names[name] = inode
        self._add_folders(folder_of(name))

    def remove(self, name: str) -> None:
        """Remove a file durably, behind the node's back."""
        del self.names[name]
        self._settle(name)
        self._durable_names.pop(name, None)

    def cut(self, name: str, size: int) -> None:
        """Shorten a file durably, behind the node's back."""
        self.put(name, bytes(self.names[name].content[:size]))

    def wipe(self) -> None:
        """Remove everything, as if the disk were replaced by a new one."""
        self.names.clear()
        self._durable_names.clear()
        self._pending.clear()
        self.folders = [""]

    def snapshot(self) -> dict[str, bytes]:
        """Return a copy of every file, as a back-up holds it."""
        return {name: bytes(self.names[name].content) for name in sorted(self.names)}

    def restore(self, files: dict[str, bytes]) -> None:
        """Replace everything by a back-up."""
        folders = self.folders
        self.wipe()
        self.folders = folders
        for name, data in files.items():
            self.put(name, data)

    def add_folder(self, folder: str) -> None:
        """Make a folder and its parents. They are durable at once."""
        self._add_folders(folder)

    def _settle(self, name: str) -> None:
        """Forget the pending changes of a name."""
        left = []
        for change in self._pending:
            source = None if change.source == name else change.source
            target = None if change.target == name else change.target
            if source is not None or target is not None:
                left.append(change._replace(source=source, target=target))
        self._pending = left

    def _drop_unless_back(self, name: str, inode: Inode) -> None:
        """Remove a durable name, unless the file has the name again."""
        if self.names.get(name) is not inode:
            _drop(self._durable_names, name, inode)

    def _add_folders(self, folder: str) -> None:
        while folder not in self.folders:
            self.folders.append(folder)
            folder = folder_of(folder)


def folder_of(name: str) -> str:
    """Return the folder of a name; "" for the node's own folder."""
    return name.rpartition("/")[0]


def _drop(names: dict[str, Inode], name: str, inode: Inode) -> None:
    if names.get(name) is inode:
        del names[name]


def _apply(data: bytearray, position: int, written: bytes | None) -> None:
    if len(data) < position:
        data.extend(bytes(position - len(data)))
    if written is None:
        del data[position:]
    else:
        data[position : position + len(written)] = written


def _piece(data: bytearray, start: int, end: int) -> bytes:
    piece = bytes(data[start:end])
    return piece + bytes(end - start - len(piece))
