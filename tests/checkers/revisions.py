"""The revision check: every answer names an offset, so the log shows whether the answer is right.

    python -m tests.checkers.revisions HISTORY.jsonl

Rule: writes are strictly serializable and default reads are linearizable exactly if

R1  an acknowledged write is in the log once, as one batch that ends at the offset in the answer and
    does what was asked; a write of unknown outcome is in the log at most once; a refused write
    changes nothing; and the log has no change that nobody asked for;
R2  an answer's offset is at or above every offset that was answered before the operation began, and
    the effect of a write is above them: offsets never contradict real time;
R3  the content of an answer is the state at its offset, and the log reaches that offset;
R4  a read that names its age reflects everything that had been answered to anybody that long ago;
R5  between the offset on which a write is conditional and the write itself, nobody else made,
    enlarged or deleted its topic.

A stale read may be behind: R2 does not compare it with earlier answers. But its content must be
some prefix of the log, and later operations must not be below its offset. A read with `minOffset`
may be behind too, but not below that offset. Apart from sorting, the check takes time in proportion
to operations and effects. It needs no search, and it covers operations on many keys at once.
"""

import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from tests.checkers.history import (
    AT_LEAST,
    CREATE,
    DELETE,
    EXISTS,
    LIST,
    OK,
    REFUSED,
    STALE,
    STALE_CONDITION,
    UNKNOWN_TOPIC,
    WRITES,
    Effect,
    Log,
    Operation,
    Summary,
    from_lines,
)

OF_CLIENTS = ("CreateTopics", "DeleteTopics")
"""Operations of batches that only clients ask for."""


def violations(operations: Sequence[Operation], log: Log, slowest_clock: float = 1.0) -> list[str]:
    """Return what contradicts the rules, one sentence each; nothing, if all is well."""
    return [
        *_effects_of_writes(operations, log),
        *_against_real_time(operations, log),
        *_contents(operations, log),
        *understated(operations, slowest_clock),
        *_conditions(operations, log),
    ]


def judged(operations: Sequence[Operation], log: Log) -> Counter[str]:
    """Return how many operations of each kind had an answer that could be judged."""
    conditional = Counter(
        "conditional writes refused" if each.code == STALE_CONDITION else "conditional writes made"
        for each in operations
        if each.expected is not None and (each.outcome == OK or each.code == STALE_CONDITION)
    )
    return conditional + Counter(
        f"judged {operation.kind}"
        for operation in operations
        if operation.outcome == OK and (operation.offset or 0) >= log.begin
    )


def understated(operations: Sequence[Operation], slowest_clock: float = 1.0) -> list[str]:
    """Return the reads that are older than they say (R4).

    No message can excuse it: it is the node's own clock, which counts `slowest_clock` seconds in
    a second at least.
    """
    found: list[str] = []
    told = [
        (each.back_us, each.offset)
        for each in operations
        if each.back_us is not None and each.offset is not None and each.outcome == OK
    ]
    told.sort()
    times = [time for time, _ in told]
    highest = list(accumulate((offset for _, offset in told), max))
    for read in operations:
        if read.kind in (STALE, AT_LEAST) and read.offset is not None and read.age_ms is not None:
            then = read.call_us - 1_000 * (read.age_ms + 1) / slowest_clock
            place = bisect_left(times, then)
            if place and highest[place - 1] > read.offset:
                found.append(
                    f"{_told(read)} and an age of {read.age_ms} ms; {highest[place - 1]} had been "
                    "told by then"
                )
    return found


def _effects_of_writes(operations: Sequence[Operation], log: Log) -> list[str]:
    """R1."""
    found: list[str] = []
    effects: dict[str, list[Effect]] = defaultdict(list)
    for effect in log.effects:
        if effect.request_id and effect.operation in OF_CLIENTS:
            effects[effect.request_id].append(effect)
    asked = {each.request_id: each for each in operations if each.kind in WRITES}
    for request_id, mine in effects.items():
        if request_id not in asked:
            found.append(f"nobody asked for {mine[0]}")
        elif len(mine) > 1:
            found.append(f"{_name(asked[request_id])} took effect at {[e.end for e in mine]}")
    for write in asked.values():
        mine = effects.get(write.request_id, [])
        if write.outcome == OK:
            found += _acknowledged(write, mine, log)
        elif write.outcome == REFUSED and any(effect.topics for effect in mine):
            found.append(f"{_name(write)} was refused with {write.code}, and is in the log")
        elif any(not _does(write, effect) for effect in mine if effect.topics):
            found.append(f"{_name(write)} did something else: {mine}")
    return found


def _acknowledged(write: Operation, mine: list[Effect], log: Log) -> list[str]:
    assert write.offset is not None
    if not mine:
        if write.offset <= log.begin:
            return []
        return [f"{_name(write)} was acknowledged at {write.offset}, and is not in the log"]
    effect = mine[0]
    if effect.end != write.offset:
        return [f"{_name(write)} was told {write.offset}, and stands at {effect.end}"]
    if not _does(write, effect):
        return [f"{_name(write)} did something else: {effect}"]
    return []


def _does(write: Operation, effect: Effect) -> bool:
    if set(effect.topics) != {write.topic}:
        return False
    return (effect.topics[write.topic] is not None) == (write.kind == CREATE)


def _against_real_time(operations: Sequence[Operation], log: Log) -> list[str]:
    """R2: go through calls and answers in order, with the highest offset answered so far."""
    found: list[str] = []
    stands = {effect.request_id: effect.end for effect in log.effects if effect.topics}
    events: list[tuple[int, Operation]] = []
    for operation in operations:
        events.append((operation.call, operation))
        if operation.back is not None:
            events.append((operation.back, operation))
    events.sort(key=lambda event: event[0])
    highest, by = -1, None
    for tick, operation in events:
        if tick == operation.back:
            if operation.offset is not None and operation.offset > highest:
                highest, by = operation.offset, operation
            continue
        if operation.kind in WRITES and operation.request_id in stands:
            if stands[operation.request_id] <= highest:
                at = stands[operation.request_id]
                found.append(f"{_name(operation)} stands at {at}; before its call {_told(by)}")
        elif operation.kind in (LIST, *WRITES) and operation.offset is not None:
            if operation.offset < highest:
                found.append(f"{_told(operation)}; before its call {_told(by)}")
        elif operation.offset is not None and operation.offset < operation.asked:
            found.append(f"{_told(operation)}, and asked for {operation.asked}")
    return found


def _conditions(operations: Sequence[Operation], log: Log) -> list[str]:
    """R5, for all writes that are in the log, acknowledged or not."""
    asked = {each.request_id: each for each in operations if each.expected is not None}
    changed = dict.fromkeys(log.topics, log.begin)
    state: dict[str, list[Any]] = {name: row[:2] for name, row in log.topics.items()}
    found: list[str] = []
    for effect in log.effects:
        for name, summary in effect.topics.items():
            now = None if summary is None else summary[:2]
            if now == state.get(name):
                continue
            write = asked.get(effect.request_id)
            last = changed.get(name, log.begin)
            if write is not None and write.expected is not None and write.expected < last:
                found.append(
                    f"{_name(write)} was made at {effect.end}, on condition of {write.expected}; "
                    f"{name} had changed at {last}"
                )
            changed[name] = effect.end
            if now is None:
                state.pop(name, None)
            else:
                state[name] = now
    return found


def _contents(operations: Sequence[Operation], log: Log) -> list[str]:
    """R3: go through the log once, with the reads in the order of their offsets."""
    found: list[str] = []
    told = [each for each in operations if each.offset is not None and each.offset >= log.begin]
    told.sort(key=lambda each: each.offset or 0)
    state: dict[str, Summary] = dict(log.topics)
    waiting = iter(log.effects)
    effect = next(waiting, None)
    for operation in told:
        assert operation.offset is not None
        while effect is not None and effect.end <= operation.offset:
            for name, summary in effect.topics.items():
                if summary is None:
                    state.pop(name, None)
                else:
                    state[name] = summary
            effect = next(waiting, None)
        if operation.offset > log.end:
            found.append(f"{_told(operation)}, and the log ends at {log.end}")
        elif operation.topics is not None and operation.topics != state:
            found.append(f"{_told(operation)}; {_difference(operation.topics, state)}")
        elif operation.outcome == REFUSED and _contradicts(operation, state):
            found.append(f"{_told(operation)} and refused with {operation.code}: not so there")
    return found


def _contradicts(write: Operation, state: dict[str, Summary]) -> bool:
    """A refusal says whether a topic exists."""
    there = write.topic in state
    return (write.kind == CREATE and write.code == EXISTS and not there) or (
        write.kind == DELETE and write.code == UNKNOWN_TOPIC and there
    )


def _difference(told: dict[str, Summary], state: dict[str, Summary]) -> str:
    names = sorted(n for n in told.keys() | state.keys() if told.get(n) != state.get(n))
    name = names[0]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"of {name} it was told {told.get(name)}, the log says {state.get(name)}{more}"


def _name(operation: Operation) -> str:
    subject = f" {operation.topic} ({operation.request_id})" if operation.topic else ""
    return f"{operation.kind}{subject}, called at {operation.call}"


def _told(operation: Operation | None) -> str:
    assert operation is not None
    return f"{_name(operation)} was told {operation.offset}"


def main() -> int:
    operations, log = from_lines(Path(sys.argv[1]).read_text().splitlines())
    found = violations(operations, log)
    print(*found, f"{len(operations)} operations, {len(found)} violations", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
