"""Searches for a legal order of the operations on one key (Wing and Gong, improved by Lowe).

Rule: the search doesn't use offsets or logs. It looks for an order that respects real time (an
operation that ended before another began comes first) and in which every answer is right. It visits
only once the orders that have done the same operations and reached the same value. After `most`
steps it gives up and reports that, and the caller must count that as a failure.

A key is a topic's name, and its value is whether the topic exists. An operation of unknown outcome
may take effect at any time after its call, or never, so an order may omit it.

Two shortcuts keep the search short without changing its result. If a ready step does not change the
value, it comes next: any legal order stays legal when that step moves to this place. Of several
ready steps of unknown outcome with the same effect, only the one that was called first is tried:
they can trade places.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from tests.checkers.history import (
    CREATE,
    DELETE,
    EXISTS,
    LIST,
    OK,
    REFUSED,
    UNKNOWN,
    UNKNOWN_TOPIC,
    WRITES,
    Operation,
)

MOST_STEPS = 200_000


class Verdict(Enum):
    """What a search came to."""

    LEGAL = "legal"
    ILLEGAL = "illegal"
    GAVE_UP = "gave up"


@dataclass(frozen=True)
class Step:
    """An operation on the key: when it was under way, and what it makes of a value."""

    call: float
    back: float
    """Infinite: it may take effect at any time after the call, or never."""
    then: Callable[[bool], Iterable[bool]]
    """The values that may follow on one; none, if the answer can't be right there."""

    @property
    def unknown(self) -> bool:
        """Whether the outcome is unknown: nobody got an answer."""
        return self.back == float("inf")


def search(steps: Sequence[Step], first: bool = False, most: int = MOST_STEPS) -> Verdict:
    """Look for a legal order of all steps that were answered, beginning with the value `first`."""
    order = sorted(steps, key=lambda step: step.call)
    answered = sum(1 << place for place, step in enumerate(order) if not step.unknown)
    stack = [(0, first)]
    seen = {(0, first)}
    taken = 0
    while stack:
        done, value = stack.pop()
        if done & answered == answered:
            return Verdict.LEGAL
        taken += 1
        if taken > most:
            return Verdict.GAVE_UP
        for bit, after in reversed(_next(order, done, value)):
            place = (done | bit, after)
            if place not in seen:
                seen.add(place)
                stack.append(place)
    return Verdict.ILLEGAL


def _next(order: Sequence[Step], done: int, value: bool) -> list[tuple[int, bool]]:
    """Return which step may come next, as its bit, and the value after it."""
    moves: list[tuple[int, bool]] = []
    deadline = float("inf")
    tried = set()
    rest = ~done & ((1 << len(order)) - 1)
    while rest:
        bit = rest & -rest
        rest ^= bit
        step = order[bit.bit_length() - 1]
        if step.call > deadline:
            break
        deadline = min(deadline, step.back)
        if step.unknown and step.then in tried:
            continue
        if step.unknown:
            tried.add(step.then)
        after = list(step.then(value))
        if after == [value] and not step.unknown:
            return [(bit, value)]
        moves += [(bit, value) for value in after]
    return moves


def steps_of(operations: Iterable[Operation], topic: str) -> list[Step]:
    """Return what the operations say of one topic's existence."""
    steps: list[Step] = []
    for operation in operations:
        if operation.kind in WRITES and operation.topic == topic:
            unknown = operation.outcome == UNKNOWN or operation.back is None
            outcome = OK if unknown else operation.outcome
            then = _THEN.get((operation.kind, outcome, operation.code))
            if then is not None:
                back = float("inf") if unknown else operation.back
                steps.append(Step(operation.call, back, then))
        elif operation.kind == LIST and operation.topics is not None:
            then = _is_there if topic in operation.topics else _is_absent
            steps.append(Step(operation.call, operation.back, then))
    return steps


def _is_there(exists: bool) -> Iterable[bool]:
    return (True,) if exists else ()


def _is_absent(exists: bool) -> Iterable[bool]:
    return () if exists else (False,)


_THEN: dict[tuple[str, str, str], Callable[[bool], Iterable[bool]]] = {
    (CREATE, OK, ""): lambda exists: () if exists else (True,),
    (DELETE, OK, ""): lambda exists: (False,) if exists else (),
    (CREATE, REFUSED, EXISTS): _is_there,
    (DELETE, REFUSED, UNKNOWN_TOPIC): _is_absent,
}
"""Refusals for other reasons say nothing of the topic. What is unknown is as if OK, or left out."""
