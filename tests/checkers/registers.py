"""A search for a legal order of the operations on one key: Wing and Gong's, as Lowe improved it.

Rule: it knows nothing of offsets and logs. It looks for one order of the operations that keeps
real time (what was over comes before what began later) and in which each answer is right. Orders
that come to the same operations done and the same value are looked at once; after `most` steps it
gives up and says so, which whoever asks must count as a failure.

The key here is a topic's name, and its value whether the topic exists. An operation of unknown
outcome may take effect at any time after its call, or never.
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

    call: int
    back: float
    """Infinite: it may take effect at any time after the call."""
    then: Callable[[bool], Iterable[bool]]
    """The values that may follow on one; none, if the answer can't be right there."""


def search(steps: Sequence[Step], first: bool = False, most: int = MOST_STEPS) -> Verdict:
    """Look for a legal order of all steps, beginning with the value `first`."""
    order = sorted(steps, key=lambda step: step.call)
    everything = (1 << len(order)) - 1
    stack = [(0, first)]
    seen = {(0, first)}
    taken = 0
    while stack:
        done, value = stack.pop()
        if done == everything:
            return Verdict.LEGAL
        taken += 1
        if taken > most:
            return Verdict.GAVE_UP
        # Candidates: not done, and called before any other that is not done was over.
        deadline = float("inf")
        rest = ~done & everything
        ready = []
        while rest:
            bit = rest & -rest
            step = order[bit.bit_length() - 1]
            if step.call > deadline:
                break
            deadline = min(deadline, step.back)
            ready.append((bit, step))
            rest ^= bit
        for bit, step in reversed(ready):
            for after in step.then(value):
                place = (done | bit, after)
                if place not in seen:
                    seen.add(place)
                    stack.append(place)
    return Verdict.ILLEGAL


def steps_of(operations: Iterable[Operation], topic: str) -> list[Step]:
    """Return what the operations say of one topic's existence."""
    steps: list[Step] = []
    for operation in operations:
        if operation.kind in WRITES and operation.topic == topic:
            then = _THEN.get((operation.kind, operation.outcome, operation.code))
            if then is not None:
                over = operation.outcome != UNKNOWN and operation.back is not None
                back = operation.back if over else float("inf")
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
    (CREATE, UNKNOWN, ""): lambda exists: (True,) if exists else (True, False),
    (DELETE, UNKNOWN, ""): lambda exists: (True, False) if exists else (False,),
}
"""Refusals for other reasons say nothing of the topic."""
