"""An immutable set of partitions that takes 20 to 30 bytes for each of them.

Rule: the keys are packed, 20 bytes each, and lie in runs of at most 64. A run is one `bytes`
object. So the set holds no object for a partition, and the garbage collector has nothing to visit.
All keys of a run are smaller than those of the next one, and the first key of a run is its
smallest; the others are in no order, so that a key is added at the end. The runs lie in pages of at
most 32. The next version shares each page, and within a page each run, that did not change.

Packed keys sort as the keys do. Two runs, or two pages, compare as their first keys do. So
`bisect` finds the run of a key without a list of first keys.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import islice
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
_RUN: Final = 64
"""The most keys in a run."""
_FILLED: Final = 48
"""The most keys in a new run, so that others may be added."""
_RUN_BYTES: Final = _RUN * PACKED_BYTES
_PAGE: Final = 32
"""The most runs in a page."""
_STEP: Final = 1_024
"""Changes between two yields: one or two milliseconds."""
_MANY: Final = 8
"""From so many changes of one run it is quicker to take the run apart."""
_UNPACK: Final = [Struct(f"{PACKED_BYTES}s" * count).unpack for count in range(_RUN + _MANY)]
"""By the number of keys in a run: returns them."""


def pack(key: PlainPartitionKey) -> bytes:
    """Return a key as 20 bytes: the topic's id, and the partition's number, big-endian."""
    return key[0] + key[1].to_bytes(4, "big")


class PartitionSet:
    """An immutable set of partition keys; see the module."""

    __slots__ = ("_length", "_pages")

    def __init__(self, packed: bytes | bytearray = b"") -> None:
        """`packed` holds packed keys, in ascending order, each once."""
        self._length = len(packed) // PACKED_BYTES
        self._pages: list[list[bytes]] = _cut(_runs(packed)) if packed else []

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: PlainPartitionKey) -> bool:
        if key[1] < 0 or not self._length:
            return False
        packed = pack(key)
        after = packed + _LAST
        page = self._pages[bisect_right(self._pages, [after]) - 1]
        return _find(page[bisect_right(page, after) - 1], packed) >= 0

    def __iter__(self) -> Iterator[PlainPartitionKey]:
        """Yield the keys, sorted. A caller that takes only the first few pays only for those."""
        for page in self._pages:
            for run in page:
                yield from cast("list[PlainPartitionKey]", sorted(_KEY.iter_unpack(run)))

    def pages(self) -> list[Any]:
        """Return the set's pages, for a caller that frees the set in steps."""
        return list(self._pages)

    def with_changes(self, changes: Mapping[bytes, bool | None]) -> "PartitionSet":
        """Return the set with these packed keys added (True) or removed (None)."""
        return finished(self.changing(changes))

    def changing(
        self, changes: Mapping[bytes, bool | None]
    ) -> Generator[None, None, "PartitionSet"]:
        """Do what `with_changes` does, and yield after each 1,024 changes; never for fewer."""
        if not changes:
            return self
        result = PartitionSet()
        result._length, result._pages = self._length, self._pages.copy()
        owned = set[int]()
        rest = iter(changes)
        while some := sorted(islice(rest, _STEP)):
            result._change(some, changes, owned)
            if len(changes) > _STEP:
                yield
        return result

    def _change(
        self, todo: list[bytes], changes: Mapping[bytes, bool | None], owned: set[int]
    ) -> None:
        """Carry out changes, whose packed keys are sorted, run by run.

        `owned` holds the identities of the pages that no other set has.
        """
        pages = self._pages
        while todo:
            after = todo[-1] + _LAST
            number = bisect_right(pages, [after]) - 1
            if number < 0:
                number = 0
                if not pages:
                    pages.append([b""])
            page = pages[number]
            if id(page) not in owned:
                page = pages[number] = page.copy()
                owned.add(id(page))
            place = max(bisect_right(page, after) - 1, 0)
            run = page[place]
            is_first = number == place == 0
            start = 0 if is_first else bisect_left(todo, run[:PACKED_BYTES])
            changed = _changed(run, todo[start:], changes)
            del todo[start:]
            self._length += (sum(map(len, changed)) - len(run)) // PACKED_BYTES
            page[place : place + 1] = changed
            if not 0 < len(page) <= _PAGE:
                cut = pages[number : number + 1] = _cut(page)
                owned.update(map(id, cut))

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


def _find(run: bytes, packed: bytes) -> int:
    """Return where in a run a packed key lies; negative: it doesn't."""
    place = run.find(packed)
    while place > 0 and place % PACKED_BYTES:
        # These bytes are the end of one key and the begin of the next.
        place = run.find(packed, place + 1)
    return place


def _changed(
    run: bytes, keys: Sequence[bytes], changes: Mapping[bytes, bool | None]
) -> list[bytes]:
    """Return the run, or the runs, that a run becomes by the changes of some packed keys."""
    if len(keys) >= _MANY:
        added = [packed for packed in keys if changes[packed]]
        return _runs(b"".join(sorted({*_keys(run)}.difference(keys).union(added))))
    for packed in keys:
        place = _find(run, packed)
        if changes[packed]:
            if place < 0:
                run = run + packed if packed > run[:PACKED_BYTES] else packed + run
        elif place == 0:
            # The next key becomes the first one, which is the smallest.
            run = b"".join(sorted(_keys(run[PACKED_BYTES:])))
        elif place > 0:
            run = run[:place] + run[place + PACKED_BYTES :]
    if 0 < len(run) <= _RUN_BYTES:
        return [run]
    return _runs(b"".join(sorted(_keys(run))))


def _keys(run: bytes) -> tuple[bytes, ...]:
    """Return the packed keys of a run, which may have a few too many."""
    return _UNPACK[len(run) // PACKED_BYTES](run)


def _runs(packed: bytes | bytearray) -> list[bytes]:
    """Cut packed keys, which are sorted, into runs of about equal length."""
    if len(packed) <= _RUN_BYTES:
        return [bytes(packed)] if packed else []
    size = PACKED_BYTES * _even(len(packed) // PACKED_BYTES, _FILLED)
    return [bytes(packed[at : at + size]) for at in range(0, len(packed), size)]


def _cut(runs: list[bytes]) -> list[list[bytes]]:
    """Cut a list of runs into pages of about equal length."""
    if not runs:
        return []
    size = _even(len(runs), _PAGE)
    return [runs[at : at + size] for at in range(0, len(runs), size)]


def _even(count: int, most: int) -> int:
    """Return the size of parts, about equal and at most `most`, into which `count` is cut."""
    parts = -(-count // most)
    return -(-count // parts)
