"""What makes a log grow: its bytes by day, by operation and by type of record, and how fast.

Rule: bytes are those of batches on disk. A batch's bytes count for its operation. Of these, each
record's own count for its type, and the rest (who, when, why, the chain) as the envelope. The rate
is that of the last days of the log's own time, so an answer doesn't depend on when somebody asks.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from audit.reading.dump import utc
from ledger.batch import Batch
from metadata.codec import decode_records, encode_record

DAY_MS: Final = 86_400_000
ENVELOPE: Final = "(envelope)"
CONTROLLERS_OWN: Final = "(none)"
"""The operation of a batch that names none."""


class Share(msgspec.Struct):
    """What one day, operation or type of record takes."""

    name: str
    bytes: int = 0
    records: int = 0
    batches: int = 0


class Growth(msgspec.Struct, frozen=True):
    """How a log grew."""

    bytes: int
    records: int
    batches: int
    first_ms: int
    last_ms: int
    days: tuple[Share, ...]
    """Ascending; days without a change are left out."""
    operations: tuple[Share, ...]
    """The largest first, as are the types."""
    types: tuple[Share, ...]
    rate_days: float
    """The last days for which the rate holds; fewer than asked for if the log is shorter."""
    rate_bytes: int
    """The bytes of these days."""

    @property
    def bytes_a_day(self) -> float:
        """The rate; 0 in a log of one moment."""
        return self.rate_bytes / self.rate_days if self.rate_days else 0.0

    def days_until(self, free_bytes: int) -> float | None:
        """Return after how many days so many bytes are used up; None: the log doesn't grow."""
        return free_bytes / self.bytes_a_day if self.bytes_a_day else None


def growth_of(batches: Iterable[Batch], rate_days: float = 7.0) -> Growth:
    """Add up a log. Raises what reading it raises, and RecordDecodeError."""
    sums = _Sums()
    for batch in batches:
        sums.take(batch)
    return sums.growth(rate_days)


class _Sums:
    """The sums so far."""

    def __init__(self) -> None:
        self._whole = Share("")
        self._days: dict[int, Share] = {}
        self._operations: dict[str, Share] = {}
        self._types: dict[str, Share] = {}
        self._hours: dict[int, int] = {}
        """Bytes by hour, for the rate: 9,000 numbers a year."""
        self._first_ms = self._last_ms = 0

    def take(self, batch: Batch) -> None:
        header, size = batch.header, len(batch.encoded)
        if not self._whole.batches:
            self._first_ms = header.timestamp_ms
        self._last_ms = header.timestamp_ms
        day, hour = header.timestamp_ms // DAY_MS, header.timestamp_ms // (DAY_MS // 24)
        operation = header.provenance.operation or CONTROLLERS_OWN
        for share in (
            self._whole,
            self._days.setdefault(day, Share(utc(day * DAY_MS)[:10])),
            self._operations.setdefault(operation, Share(operation)),
        ):
            share.bytes += size
            share.records += header.count
            share.batches += 1
        self._hours[hour] = self._hours.get(hour, 0) + size
        self._take_records(batch, size)

    def _take_records(self, batch: Batch, size: int) -> None:
        kinds: set[str] = set()
        for record in decode_records(batch.records):
            kind = type(record).__name__
            own = len(encode_record(record))
            share = self._types.setdefault(kind, Share(kind))
            share.bytes += own
            share.records += 1
            share.batches += kind not in kinds
            kinds.add(kind)
            size -= own
        envelope = self._types.setdefault(ENVELOPE, Share(ENVELOPE))
        envelope.bytes += size
        envelope.batches += 1

    def growth(self, rate_days: float) -> Growth:
        whole = self._whole
        span = min(rate_days, (self._last_ms - self._first_ms) / DAY_MS)
        since = (self._last_ms - span * DAY_MS) // (DAY_MS // 24)
        return Growth(
            whole.bytes,
            whole.records,
            whole.batches,
            self._first_ms,
            self._last_ms,
            tuple(self._days[day] for day in sorted(self._days)),
            _largest_first(self._operations),
            _largest_first(self._types),
            span,
            sum(size for hour, size in self._hours.items() if hour >= since),
        )


def _largest_first(shares: dict[str, Share]) -> tuple[Share, ...]:
    return tuple(sorted(shares.values(), key=lambda share: (-share.bytes, share.name)))
