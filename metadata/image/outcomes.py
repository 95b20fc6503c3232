"""The outcomes of requests, so that a retry gets the same answer and no request is executed twice.

Rule: an image keeps at most 1,000,000 outcomes and 256 MiB of them, each for 24 hours of batch
time. At the end of a batch, the smallest keys are evicted until all three limits hold. Keys are
UUIDv7, so the smallest key was drawn first. The floor is the largest evicted key. A request with a
key at or below the floor may have been executed and forgotten, so it is never executed again.

No outcome is evicted while a transaction is open. The decision of the transaction found its key
above the floor. When its last batch records the outcome, the key must still be above the floor,
even if the clock was set forward by a day in between.

Only controllers hold outcomes. A snapshot for brokers leaves them out.
"""

import heapq
from collections.abc import Callable, Generator, Iterator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_bytes, mix_text
from metadata.image.open_maps import BuiltKeys, OpenMap
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself, replays
from metadata.records import OutcomeFloorRecord, Record, RequestOutcomeRecord

KEPT_MS = 24 * 60 * 60 * 1000
KEPT_KEYS_MAX = 1_000_000
KEPT_BYTES_MAX = 256 * 1024 * 1024
_BYTES_BESIDE_ANSWER = 16 + 32 + 8
_FLOOR = "floor"

Outcome = RequestOutcomeRecord
"""An outcome is its record: `digest`, `answer`, `time_ms`."""


class OutcomesImage(msgspec.Struct, frozen=True):
    """Outcomes by request key, and the keys in the order of their eviction."""

    by_key: BucketMap[bytes, Outcome]
    floors: BucketMap[str, bytes]
    order: SortedKeys[bytes]
    size: int
    """In bytes: 56 and the answer's length for each outcome."""

    def get(self, key: bytes) -> Outcome | None:
        """Return the outcome of a request; None: it is not known."""
        return self.by_key.get(key)

    def __len__(self) -> int:
        return len(self.by_key)

    @property
    def floor(self) -> bytes:
        """The largest evicted key; b"": none was evicted. A key at or below it is refused."""
        return self.floors.get(_FLOOR, b"")


EMPTY_OUTCOMES = OutcomesImage(BucketMap(mix_bytes), BucketMap(mix_text), SortedKeys(), 0)


def floor_records(_name: str, key: bytes) -> tuple[Record, ...]:
    """Return the record that restores the floor."""
    return (OutcomeFloorRecord(key),)


class OutcomesDelta:
    """Replays the records of outcomes."""

    def __init__(self, image: OutcomesImage) -> None:
        self.by_key = Overlay(image.by_key)
        self.floors = Overlay(image.floors)
        self._order = image.order
        self._oldest: Iterator[bytes] = iter(image.order)
        self._next_old = next(self._oldest, None)
        self._dropped = 0
        self._new: list[bytes] = []
        self._count = len(image.by_key)
        self._size = image.size

    def apply_in_steps(self) -> Generator[None, None, OutcomesImage]:
        order = self._order.without_first(self._dropped).with_keys(sorted(self._new))
        return OutcomesImage(
            (yield from self.by_key.apply_in_steps()),
            (yield from self.floors.apply_in_steps()),
            order,
            self._size,
        )

    def opened(self, built: Callable[[], OutcomesImage]) -> OutcomesImage:
        """Return the image of what was replayed so far (see `open_maps`); its size is not kept."""
        return OutcomesImage(
            OpenMap(self.by_key, lambda: built().by_key),
            OpenMap(self.floors, lambda: built().floors),
            BuiltKeys(lambda: built().order),
            -1,
        )

    @replays(RequestOutcomeRecord)
    def note(self, record: RequestOutcomeRecord, offset: int) -> None:
        """Add the outcome of a request that was executed."""
        key = record.key
        if key in self.by_key:
            raise ReplayError(offset, f"request {key.hex()} was executed before")
        if key <= (self.floors.get(_FLOOR) or b""):
            raise ReplayError(offset, f"request {key.hex()} may have been executed before")
        self.by_key.set(key, record)
        heapq.heappush(self._new, key)
        self._count += 1
        self._size += _size(record)

    @replays(OutcomeFloorRecord)
    def restore_floor(self, record: OutcomeFloorRecord, offset: int) -> None:
        """Set the floor from a snapshot."""
        self.floors.set(_FLOOR, record.key)

    def evict(self, timestamp_ms: int) -> None:
        """Evict outcomes at the end of a batch with this timestamp, until all limits hold."""
        while self._count:
            new = self._new[0] if self._new else None
            old = self._next_old
            from_base = new is None or (old is not None and old < new)
            key = old if from_base else new
            assert key is not None
            outcome = self.by_key.get(key)
            assert outcome is not None
            fits = self._count <= KEPT_KEYS_MAX and self._size <= KEPT_BYTES_MAX
            if fits and outcome.time_ms > timestamp_ms - KEPT_MS:
                return
            if from_base:
                self._next_old = next(self._oldest, None)
                self._dropped += 1
            else:
                heapq.heappop(self._new)
            self.by_key.remove(key)
            self.floors.set(_FLOOR, key)
            self._count -= 1
            self._size -= _size(outcome)


def _size(outcome: Outcome) -> int:
    return _BYTES_BESIDE_ANSWER + len(outcome.answer)


TABLES: Final = (
    ImageTable("floors", "outcomes", "floors", floor_records, "floor", controllers_only=True),
    ImageTable(
        "outcomes", "outcomes", "by_key", itself, "request", ("key",), controllers_only=True
    ),
)
