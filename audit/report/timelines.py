"""What happened to partitions and brokers, kept so that the page can draw whatever one asks for.

Rule: only what changed in the period is kept: each step as a time, an offset and the number of a
state, and each different state once. The page draws it when somebody asks, so it holds thousands of
timelines in the room of a few pictures. If there are too many steps, those of the partitions that
were longest without a leader and changed most are kept, and the page says so.
"""

from array import array
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from audit.report.facts import Rows
from audit.report.period import Period
from audit.report.words import counted, number

_MOST_STEPS: Final = 250_000
"""The most steps of a page."""
_WIDTH: Final = 3
"""A step has a time, an offset and a state."""


class UnknownTimelineError(ValueError):
    """Nothing of that name changed in the period. The message says what is meant."""


class Timelines(NamedTuple):
    """The section, and what the page's script draws it from."""

    partitions: int
    """How many changed at all in the period."""
    steps: int
    left_out: str
    """A sentence; empty if all that changed is on the page."""
    asked: tuple[str, ...]
    """What was asked for; otherwise the worst partition, if there is one."""
    states: list[Any]
    """Leader, ISR, replicas, min ISR."""
    lines: list[Any]
    """By partition: name, topic, times, offsets, states, whether the last step lasts. Times and
    offsets are differences."""
    brokers: list[Any]
    """By broker: id, and from, until, state, offset of each interval."""


class _Line:
    """One partition."""

    __slots__ = ("away_ms", "lasts", "number", "steps", "topic", "topic_id", "until_ms")

    def __init__(self, topic_id: str, topic: str, number_: int) -> None:
        self.topic_id = topic_id
        self.topic = topic
        self.number = number_
        self.steps = array("q")
        self.away_ms = 0
        self.until_ms = 0
        self.lasts = False

    @property
    def changes(self) -> int:
        return len(self.steps) // _WIDTH - 1

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.number}"


class TimelineSums:
    """The steps of the intervals so far."""

    def __init__(self, period: Period) -> None:
        self._period = period
        self._lines: dict[tuple[str, int], _Line] = {}
        self._states: dict[tuple[Any, ...], int] = {}

    def add(self, row: tuple[Any, ...]) -> None:
        """Add an interval. The intervals of one partition must come in order."""
        topic_id, partition, offset, topic, _, from_ms, until_ms, *state, offline, _ = row
        part = self._period.clip(from_ms, until_ms)
        if part is None:
            return
        line = self._lines.get((topic_id, partition))
        if line is None:
            line = self._lines[topic_id, partition] = _Line(topic_id, topic, partition)
        key = tuple(state)
        place = self._states.setdefault(key, len(self._states))
        line.steps.extend((part[0], offset, place))
        line.until_ms, line.lasts = part[1], until_ms is None
        if offline:
            line.away_ms += part[1] - part[0]

    def section(self, brokers: Rows, asked: Sequence[str]) -> Timelines:
        """Return the section. `asked`: names of things; the page begins with them.

        Raises UnknownTimelineError.
        """
        changed = [line for line in self._lines.values() if line.changes]
        moved = _brokers(brokers, self._period)
        things = tuple(_thing(each, changed, moved) for each in asked)
        changed.sort(key=lambda line: (-line.away_ms, -line.changes, line.name, line.topic_id))
        if things:
            changed.sort(key=lambda line: not _is_of(line, things))
        kept, steps = _kept(changed)
        twice = _told_apart(kept)
        left_out = ""
        if len(kept) < len(changed):
            left_out = (
                f"{counted(len(changed) - len(kept), 'partition')} that changed least "
                f"{'is' if len(changed) - len(kept) == 1 else 'are'} not on this page, of "
                f"{number(len(changed))}."
            )
        first = (f"partition:{kept[0].name}",) if kept else ()
        states, lines = self._packed(kept, twice)
        return Timelines(len(changed), steps, left_out, things or first, states, lines, moved)

    def _packed(self, kept: list[_Line], twice: set[str]) -> tuple[list[Any], list[Any]]:
        """Return the states that are used, and the lines with their new numbers."""
        states = list(self._states)
        used: dict[int, int] = {}
        lines = []
        for line in kept:
            steps = line.steps
            times, offsets = list(steps[0::_WIDTH]), list(steps[1::_WIDTH])
            name = f"{line.name} (topic id {line.topic_id})" if line.name in twice else line.name
            lines.append(
                [
                    name,
                    line.topic,
                    _differences([*times, line.until_ms]),
                    _differences(offsets),
                    [used.setdefault(state, len(used)) for state in steps[2::_WIDTH]],
                    int(line.lasts),
                ]
            )
        return [states[place] for place in used], lines


def _differences(values: list[int]) -> list[int]:
    return [values[0], *(after - before for before, after in pairwise(values))]


def _kept(ordered: list[_Line]) -> tuple[list[_Line], int]:
    """Return the first lines that fit on the page, and their steps."""
    kept: list[_Line] = []
    steps = 0
    for line in ordered:
        steps += line.changes + 1
        if steps > _MOST_STEPS and kept:
            return kept, steps - line.changes - 1
        kept.append(line)
    return kept, steps


def _told_apart(lines: list[_Line]) -> set[str]:
    """Return the names that more than one partition has: of topics that were made again."""
    names: set[str] = set()
    twice: set[str] = set()
    for line in lines:
        (twice if line.name in names else names).add(line.name)
    return twice


def _brokers(rows: Rows, period: Period) -> list[Any]:
    """Return the intervals of brokers within the period."""
    found = []
    for broker_id, group in groupby(rows, key=lambda row: row[0]):
        steps = []
        for _, offset, _, from_ms, until_ms, state in group:
            part = period.clip(from_ms, until_ms)
            if part is not None:
                steps.append([*part, state, offset])
        if steps:
            found.append([broker_id, steps])
    return found


def _is_of(line: _Line, things: Sequence[str]) -> bool:
    return f"partition:{line.name}" in things or f"topic:{line.topic}" in things


def _thing(asked: str, lines: list[_Line], brokers: list[Any]) -> str:
    """Return what was meant: `partition:NAME-NUMBER`, `topic:NAME` or `broker:ID`."""
    names = {"partition": {line.name for line in lines}, "topic": {line.topic for line in lines}}
    names["broker"] = {str(broker_id) for broker_id, _ in brokers}
    kind, _, name = asked.partition(":")
    if kind in names and name in names[kind]:
        return asked
    for kind in ("partition", "topic"):
        if asked in names[kind]:
            return f"{kind}:{asked}"
    raise UnknownTimelineError(
        f"nothing named {asked!r} changed in this period. A timeline is that of "
        "partition:orders-3, topic:orders or broker:2."
    )
