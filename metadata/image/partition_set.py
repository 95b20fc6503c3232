"""An immutable sorted set of partitions that takes 20 to 30 bytes for each of them.

Rule: the keys are packed, 20 bytes each, into sorted runs of at most 64, and each run is one
`bytes` object. So the set holds no object for a partition, and the garbage collector has nothing to
visit. The runs lie in pages of at most 64. The next version shares each page, and within a page
each run, that did not change.

Packed keys sort as the keys do. Two runs, or two pages, compare as their first keys do. So
`bisect` finds the run of a key without a list of first keys.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, Final, cast

from metadata.partition_key import PlainPartitionKey
from metadata.steps import finished

PACKED_BYTES: Final = 20
"""The length of a packed key."""

_KEY: Final = Struct(">16sI")
_LAST: Final = b"\xff" * PACKED_BYTES
"""Behind a packed key, it gives the place after any run that begins with that key. No packed key is
as large, since partition numbers have 31 bits."""
_ADDED, _REMOVED = b"\x01", b"\x00"
"""Behind a packed key, what shall become of it."""
_RUN: Final = 64
"""The most keys in a run."""
_PAGE: Final = 64
"""The most runs in a page."""
_STEP: Final = 256
"""Changes between two yields: about a millisecond."""


def pack(key: PlainPartitionKey) -> bytes:
    """Return a key as 20 bytes: the topic's id, and the partition's number, big-endian."""
    return key[0] + key[1].to_bytes(4, "big")


class PartitionSet:
    """An immutable sorted set of partition keys; see the module."""

    __slots__ = ("_length", "_pages")

    def __init__(self, packed: bytes | bytearray = b"") -> None:
        """`packed` holds packed keys, in ascending order, each once."""
        self._length = len(packed) // PACKED_BYTES
        self._pages: list[list[bytes]] = _cut(_runs(packed), _PAGE)

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: PlainPartitionKey) -> bool:
        if key[1] < 0 or not self._length:
            return False
        packed = pack(key)
        page = self._pages[_last_before(self._pages, [packed + _LAST])]
        run = page[_last_before(page, packed + _LAST)]
        place = _place(run, packed, 0)
        return run[place : place + PACKED_BYTES] == packed

    def __iter__(self) -> Iterator[PlainPartitionKey]:
        """Yield the keys, sorted. A caller that takes only the first few pays only for those."""
        for page in self._pages:
            for run in page:
                yield from cast("Iterator[PlainPartitionKey]", _KEY.iter_unpack(run))

    def pages(self) -> list[Any]:
        """Return the set's pages, for a caller that frees the set in steps."""
        return list(self._pages)

    def with_changes(self, changes: Mapping[PlainPartitionKey, bool | None]) -> "PartitionSet":
        """Return the set with these keys added (True) or removed (None)."""
        return finished(self.changing(changes))

    def changing(
        self, changes: Mapping[PlainPartitionKey, bool | None]
    ) -> Generator[None, None, "PartitionSet"]:
        """Do what `with_changes` does, and yield after each 256 changes; never for fewer."""
        if not changes:
            return self
        todo: list[bytes] = []
        for key, present in changes.items():
            todo.append(pack(key) + (_ADDED if present else _REMOVED))
            if len(todo) % _STEP == 0:
                yield
        todo.sort()
        result = PartitionSet()
        result._length, result._pages = self._length, self._pages.copy()
        next_yield = len(todo) - _STEP
        while todo:
            result._change_run(todo)
            if len(todo) <= next_yield:
                next_yield = len(todo) - _STEP
                yield
        return result

    def _change_run(self, todo: list[bytes]) -> None:
        """Change the last of the runs that change, and take its changes off the end of `todo`."""
        pages, after = self._pages, todo[-1][:PACKED_BYTES] + _LAST
        number = _last_before(pages, [after])
        page = pages[number].copy() if pages else []
        place = _last_before(page, after)
        run = page[place] if page else b""
        is_first = number == place == 0
        start = 0 if is_first else bisect_left(todo, run[:PACKED_BYTES])
        start = max(start, len(todo) - _STEP)
        changed = _changed(run, todo[start:])
        del todo[start:]
        self._length += (len(changed) - len(run)) // PACKED_BYTES
        page[place : place + 1] = _runs(changed)
        pages[number : number + 1] = _cut(page, _PAGE)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionSet):
            return NotImplemented
        if self._pages is other._pages:
            return True
        return self._length == other._length and all(map(_is_equal, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PartitionSet({list(self)!r})"


def _is_equal(one: object, other: object) -> bool:
    return one == other


def _last_before(ascending: Sequence[Any], key: Any) -> int:
    """Return the place of the last element that is smaller than `key`; 0 if there is none."""
    return max(bisect_right(ascending, key) - 1, 0)


def _place(run: bytes, packed: bytes, start: int) -> int:
    """Return where in a run, from `start` on, the first key lies that isn't before `packed`."""
    low, high = start // PACKED_BYTES, len(run) // PACKED_BYTES
    while low < high:
        middle = (low + high) // 2
        at = middle * PACKED_BYTES
        if run[at : at + PACKED_BYTES] < packed:
            low = middle + 1
        else:
            high = middle
    return low * PACKED_BYTES


def _changed(run: bytes, changes: Sequence[bytes]) -> bytes:
    """Return a run after changes, which are sorted."""
    parts: list[bytes] = []
    at = 0
    for change in changes:
        packed = change[:PACKED_BYTES]
        place = _place(run, packed, at)
        parts.append(run[at:place])
        at = place
        if run[place : place + PACKED_BYTES] == packed:
            at += PACKED_BYTES
        if change.endswith(_ADDED):
            parts.append(packed)
    parts.append(run[at:])
    return b"".join(parts)


def _runs(packed: bytes | bytearray) -> list[bytes]:
    """Cut packed keys into runs of about equal length."""
    count = len(packed) // PACKED_BYTES
    if count <= _RUN:
        return [bytes(packed)] if packed else []
    size = PACKED_BYTES * _even(count, _RUN)
    return [bytes(packed[at : at + size]) for at in range(0, len(packed), size)]


def _cut(runs: list[bytes], most: int) -> list[list[bytes]]:
    """Cut a list of runs into pages of about equal length."""
    if len(runs) <= most:
        return [runs] if runs else []
    size = _even(len(runs), most)
    return [runs[at : at + size] for at in range(0, len(runs), size)]


def _even(count: int, most: int) -> int:
    """Return the size of parts, about equal and at most `most`, into which `count` is cut."""
    parts = -(-count // most)
    return -(-count // parts)
