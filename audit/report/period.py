"""The time that a report covers, and the equal pieces into which its drawings cut it.

Rule: pieces are whole hours, days or weeks of UTC, so two reports of one cluster can be laid side
by side. However long the history is, there are never more pieces than a drawing can show.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from audit.report.words import DAY_MS, HOUR_MS, MINUTE_MS, day_of, minute, tick

_WEEK_MS: Final = 7 * DAY_MS
_MONDAY_MS: Final = 4 * DAY_MS
"""1970 began on a Thursday; weeks begin on Mondays."""
_TICKS: Final = (
    *(n * MINUTE_MS for n in (1, 2, 5, 10, 30)),
    *(n * HOUR_MS for n in (1, 3, 6, 12)),
    *(n * DAY_MS for n in (1, 2)),
    *(n * _WEEK_MS for n in (1, 2, 4, 13, 26, 52, 104, 260)),
)
_MOST_TICKS: Final = 10
_STEPS: Final = (
    (10 * MINUTE_MS, "10 minutes"),
    (HOUR_MS, "hour"),
    (6 * HOUR_MS, "6 hours"),
    (DAY_MS, "day"),
    (_WEEK_MS, "week"),
    (4 * _WEEK_MS, "4 weeks"),
    (13 * _WEEK_MS, "13 weeks"),
    (52 * _WEEK_MS, "52 weeks"),
)


class Pieces(NamedTuple):
    """A period cut into pieces of `step_ms`. The first begins at `begin_ms`."""

    begin_ms: int
    step_ms: int
    number: int
    unit: str
    """The name of one piece: `hour`, `day`, `4 weeks`."""

    def place(self, timestamp_ms: int) -> int:
        """Return the number of the piece that contains a time."""
        return (timestamp_ms - self.begin_ms) // self.step_ms

    def spread(self, part: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the pieces that a part of the period touches, with its length in each."""
        begin, end = part
        for place in range(self.place(begin), self.place(max(begin, end - 1)) + 1):
            low, high = self.span(place)
            yield place, min(end, high) - max(begin, low)

    def span(self, place: int) -> tuple[int, int]:
        """Return when a piece begins and ends."""
        begin = self.begin_ms + place * self.step_ms
        return begin, begin + self.step_ms

    def name(self, place: int) -> str:
        """Return words that say when a piece was."""
        begin, _ = self.span(place)
        return day_of(begin) if self.step_ms == DAY_MS else f"{self.unit} from {minute(begin)}"

    @property
    def whole(self) -> "Period":
        """From the beginning of the first piece to the end of the last."""
        return Period(self.begin_ms, self.span(self.number - 1)[1])


class Period(NamedTuple):
    """From `from_ms` up to `until_ms`, the log's horizon."""

    from_ms: int
    until_ms: int

    @property
    def length_ms(self) -> int:
        """How long it is."""
        return self.until_ms - self.from_ms

    def clip(self, from_ms: int, until_ms: int | None) -> tuple[int, int] | None:
        """Return the part of an interval within the period, or None.

        An open end means the horizon.
        """
        begin = max(from_ms, self.from_ms)
        end = self.until_ms if until_ms is None else min(until_ms, self.until_ms)
        if end < begin or begin > self.until_ms:
            return None
        return begin, end

    def ticks(self) -> list[int]:
        """Return the times to name on an axis: whole hours, days, Mondays."""
        for step_ms in _TICKS:
            origin = _MONDAY_MS if step_ms % _WEEK_MS == 0 else 0
            first = -((origin - self.from_ms) // step_ms) * step_ms + origin
            if (self.until_ms - first) // step_ms < _MOST_TICKS:
                return list(range(first, self.until_ms + 1, step_ms))
        return [self.from_ms]

    def named_ticks(self) -> list[tuple[int, str]]:
        """Return those times with their names: `14:30`, and at midnight `3 Nov`."""
        return [(at_ms, tick(at_ms)) for at_ms in self.ticks()]

    def pieces(self, at_most: int, at_least_ms: int = 0) -> Pieces:
        """Cut the period into at most `at_most` pieces, none shorter than `at_least_ms`."""
        for step_ms, unit in _STEPS:
            origin = _MONDAY_MS if step_ms % _WEEK_MS == 0 else 0
            begin = (self.from_ms - origin) // step_ms * step_ms + origin
            count = (max(self.until_ms, self.from_ms) - begin) // step_ms + 1
            if step_ms >= at_least_ms and count <= at_most:
                return Pieces(begin, step_ms, count, unit)
        begin = self.from_ms // DAY_MS * DAY_MS
        length_ms = max(self.until_ms, self.from_ms) - begin
        step_ms = (length_ms // at_most // DAY_MS + 1) * DAY_MS
        return Pieces(begin, step_ms, length_ms // step_ms + 1, f"{step_ms // DAY_MS} days")
