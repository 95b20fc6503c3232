"""The content of a simulated disk: as written, and as it would be after a loss of power.

Rule: the platter survives processes. A kill loses nothing that was written. A loss of power keeps
exactly what was synced. The seed decides about everything else:

- each 512-byte sector of unsynced bytes by itself: kept, not written (old bytes or zeros), or
  garbled; the file's length is anywhere between the durable and the written one;
- each creation, rename and unlink since the folder's last sync by itself: kept or undone; but
  one that is undone takes the later ones of the same name with it.

A sector that holds synced bytes too keeps them: drives write a sector whole, so a rewrite of
its durable half leaves that half as it was.
"""

from random import Random
from typing import NamedTuple

SECTOR = 512
_SALVAGE = ("all", "none", "prefix", "mixed", "mixed")


class Inode:
    """The bytes of one file: as a process reads them, as the medium holds them, and between."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = bytearray()
        self._pending: list[tuple[int, bytes | None]] = []
        self._retired = 0

    @property
    def changes(self) -> int:
        """How many changes were ever made: what a sync that starts now has to cover."""
        return self._retired + len(self._pending)

    @property
    def synced(self) -> bool:
        """Whether a loss of power would change nothing."""
        return not self._pending

    def append(self, data: bytes) -> None:
        """Write at the end; pending until a sync."""
        self._pending.append((len(self.content), data))
        self.content += data

    def truncate(self, size: int) -> None:
        """Cut; pending until a sync."""
        if size < len(self.content):
            self._pending.append((size, None))
            del self.content[size:]

    def sync(self, upto: int) -> None:
        """Make the changes before number `upto` durable."""
        for position, data in self._take(upto):
            _apply(self.durable, position, data)

    def fail_sync(self, upto: int) -> None:
        """Lose the changes before number `upto`: the kernel calls their pages clean.

        What a process reads stays as it was until `forget_cache`.
        """
        self._take(upto)

    def forget_cache(self) -> None:
        """Read from the medium again what a failed sync has lost. When the process is gone."""
        self.content = bytearray(self.durable)
        for position, data in self._pending:
            _apply(self.content, position, data)

    def lose_power(self, random: Random) -> None:
        """Decide what is left of the pending changes."""
        if self._pending:
            self.durable = self._salvage(random)
            self._retired += len(self._pending)
            self._pending.clear()
        self.content = bytearray(self.durable)

    def overwrite(self, position: int, data: bytes) -> None:
        """Put other bytes in the place of some, wherever they stand: no write, but damage."""
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
    """A change of names that a loss of power may undo."""

    source: str | None
    """The name that goes away."""
    target: str | None
    """The name that comes to stand for the inode."""
    inode: Inode
    source_synced: bool = False
    """The source's folder was synced, but not yet the target's."""


class Platter:
    """The files of one node, over all its lives."""

    def __init__(self, random: Random) -> None:
        self.names: dict[str, Inode] = {}
        self.folders: list[str] = [""]
        self._durable_names: dict[str, Inode] = {}
        self._pending: list[_NameChange] = []
        self._random = random

    def used_bytes(self) -> int:
        """Bytes in all files."""
        return sum(len(inode.content) for inode in self.names.values())

    def create(self, name: str) -> Inode:
        """Make an empty file."""
        inode = self.names[name] = Inode()
        self._pending.append(_NameChange(None, name, inode))
        return inode

    def rename(self, source: str, target: str) -> None:
        """Give a file another name; what bore it is gone."""
        inode = self.names.pop(source)
        self.names[target] = inode
        self._pending.append(_NameChange(source, target, inode))

    def unlink(self, name: str) -> None:
        """Take a name away."""
        self._pending.append(_NameChange(name, None, self.names.pop(name)))

    def sync_folder(self, folder: str) -> None:
        """Make the names in a folder durable.

        A rename out of another folder leaves the name there until that one is synced too; it
        never loses the file, unless another one is given the old name before that.
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
        """The process is gone: what failed syncs have lost is not read from memory any more."""
        for inode in self.names.values():
            inode.forget_cache()

    def lose_power(self) -> None:
        """Decide what is left of all that was not synced."""
        keep = self._random.choice((0.0, 0.5, 1.0))
        undone: set[str | None] = set()
        for source, target, inode, source_synced in self._pending:
            # What happened to one name is kept up to some point in time, as journals do it.
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
        """Rot: turn over one bit at rest."""
        inode = self.names[name]
        for data in (inode.content, inode.durable):
            if position < len(data):
                data[position] ^= 1 << bit

    def overwrite(self, name: str, position: int, data: bytes) -> None:
        """Put other bytes in the place of some, durably, past all rules; also under a process."""
        self.names[name].overwrite(position, data)

    def durable_files(self) -> dict[str, bytes]:
        """Copy what no loss of power could take: durable bytes under durable names."""
        names = self._durable_names
        return {name: bytes(names[name].durable) for name in sorted(names)}

    def put(self, name: str, data: bytes) -> None:
        """Place a file whole and durable, past all rules: a meddling operator."""
        inode = Inode()
        inode.content = bytearray(data)
        inode.durable = bytearray(data)
        self._settle(name)
        self.names[name] = self._durable_names[name] = inode
        self._add_folders(folder_of(name))

    def remove(self, name: str) -> None:
        """Take a file away, durably, past all rules."""
        del self.names[name]
        self._settle(name)
        self._durable_names.pop(name, None)

    def cut(self, name: str, size: int) -> None:
        """Shorten a file, durably, past all rules."""
        self.put(name, bytes(self.names[name].content[:size]))

    def wipe(self) -> None:
        """Lose everything: a new disk."""
        self.names.clear()
        self._durable_names.clear()
        self._pending.clear()
        self.folders = [""]

    def snapshot(self) -> dict[str, bytes]:
        """Copy every file, as a back-up would."""
        return {name: bytes(self.names[name].content) for name in sorted(self.names)}

    def restore(self, files: dict[str, bytes]) -> None:
        """Put a back-up in the place of everything."""
        folders = self.folders
        self.wipe()
        self.folders = folders
        for name, data in files.items():
            self.put(name, data)

    def add_folder(self, folder: str) -> None:
        """Make a folder and its parents; durable at once."""
        self._add_folders(folder)

    def _settle(self, name: str) -> None:
        """Let nothing that is pending bear on a name any more."""
        left = []
        for change in self._pending:
            source = None if change.source == name else change.source
            target = None if change.target == name else change.target
            if source is not None or target is not None:
                left.append(change._replace(source=source, target=target))
        self._pending = left

    def _drop_unless_back(self, name: str, inode: Inode) -> None:
        """Take a durable name away, unless the file got it back later, in a folder synced since."""
        if self.names.get(name) is not inode:
            _drop(self._durable_names, name, inode)

    def _add_folders(self, folder: str) -> None:
        while folder not in self.folders:
            self.folders.append(folder)
            folder = folder_of(folder)


def folder_of(name: str) -> str:
    """Return the folder that a name is in; "" for the top."""
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
