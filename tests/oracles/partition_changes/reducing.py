"""Reduces a case that differs to a small one that still does.

Rule: each step takes something away: a replica, a part of the target, a broker that is alive. The
first smaller case that differs without an excuse is the next one, until there is none.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from controller.managers.partition_change import Rules, Target
from metadata.records import NO_LEADER
from tests.oracles.partition_changes.comparing import Ask, Judged, judge_all
from tests.oracles.partition_changes.lines import Case, Change


def reduced(ask: Ask, case: Case) -> Judged:
    """Return the smallest case found that differs for no known reason, from one that does."""
    [smallest] = judge_all(ask, [case])
    [plain] = judge_all(ask, [Case(case.partition, case.change._replace(asked=""))])
    if not plain.wrong:
        return smallest  # The target itself differs, and a smaller one would be another question.
    smallest = plain
    while True:
        wrong = (one for one in judge_all(ask, list(_smaller(smallest.case))) if one.wrong)
        smaller = next(wrong, None)
        if smaller is None:
            return smallest
        smallest = smaller


def _smaller(case: Case) -> Iterator[Case]:
    """Yield cases that lack something of this one, the largest steps first."""
    partition, change = case
    if len(partition.replicas) > 1:
        fewer = (_without(case, broker) for broker in partition.replicas)
        yield from (one for one in fewer if one.change.target.replicas != ())
    for simpler in _simpler_changes(change):
        yield Case(partition, simpler)
    for field in ("elr", "last_known_elr", "removing", "adding", "isr", "directories"):
        before = getattr(partition, field)
        if before:
            yield Case(msgspec.structs.replace(partition, **{field: ()}), change)
        if len(before) > 1 and field != "directories":
            yield Case(msgspec.structs.replace(partition, **{field: before[1:]}), change)
    if partition.leader_recovery_state:
        yield Case(msgspec.structs.replace(partition, leader_recovery_state=0), change)


def _simpler_changes(change: Change) -> Iterator[Change]:
    plain: Change = Change(alive=change.alive)
    for field in ("rules", "lost", "defaults", "level"):
        if getattr(change, field) != getattr(plain, field):
            yield _with(change, {field: getattr(plain, field)})
    for field, value in zip(Target._fields, Target(), strict=True):
        if getattr(change.target, field) != value:
            yield change._replace(target=_with(change.target, {field: value}))
    for field, value in zip(Rules._fields, Rules(), strict=True):
        if getattr(change.rules, field) != value:
            yield change._replace(rules=_with(change.rules, {field: value}))
    for broker in change.alive:
        yield change._replace(alive=tuple(one for one in change.alive if one != broker))


def _without(case: Case, broker: int) -> Case:
    """Return the case without one replica, wherever it is named."""
    partition, change = case

    def less(ids: Any) -> Any:
        return ids and tuple(one for one in ids if one != broker)

    kept = [at for at, one in enumerate(partition.replicas) if one != broker]
    fields = ("replicas", "isr", "elr", "last_known_elr", "removing", "adding")
    smaller = msgspec.structs.replace(
        partition,
        directories=tuple(partition.directories[at] for at in kept if partition.directories),
        leader=NO_LEADER if partition.leader == broker else partition.leader,
        **{field: less(getattr(partition, field)) for field in fields},
    )
    fields = ("isr", "replicas", "removing", "adding")
    target = _with(change.target, {field: less(getattr(change.target, field)) for field in fields})
    return Case(smaller, change._replace(target=target, alive=less(change.alive)))


def _with(whole: Any, fields: dict[str, Any]) -> Any:
    return whole._replace(**fields)
