"""Moments that people type, read from an index instead of the log."""

from audit.index.log_index import LogIndex
from audit.reading.moments import offset_of


class IndexedMoments:
    """What `audit.reading.moments` needs of a log."""

    def __init__(self, index: LogIndex) -> None:
        self._index = index
        mark = index.mark
        self.log_start = index.log_start
        self.log_end = mark.log_end
        self._last_ms = mark.timestamp_ms

    @property
    def start_timestamp_ms(self) -> int:
        """A time before which nothing can be read; 0 for a whole log."""
        first = self._index.batch_before(self.log_start + 1) if self.log_start else None
        return 0 if first is None else first.time_ms

    def end_of_batch(self, offset: int) -> int:
        return self._index.end_of_batch(offset)

    def last_timestamp_ms(self) -> int:
        return self._last_ms

    def offset_at_time(self, timestamp_ms: int) -> int:
        return self._index.offset_at_time(timestamp_ms)

    def offset(self, text: str | None) -> int:
        """Return the end offset that a moment means; None means the end. Raises MomentError."""
        return offset_of(self, text or None)

    def first(self, text: str | None) -> int:
        """Return the first offset of a moment, as `audit.questions.search.first_offset` does."""
        if not text:
            return self.log_start
        end = self.offset(text)
        return int(text) if text.strip().isdecimal() else end

    def last(self, text: str | None) -> int:
        """Return the offset at which a moment ends, exclusive."""
        end = self.offset(text)
        return int(text) if text and text.strip().isdecimal() else end
