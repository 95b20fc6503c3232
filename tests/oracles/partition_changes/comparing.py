"""Compares our answers with Kafka's, field by field.

Two things are the same by definition. The order of an ELR: Kafka's is that of a hash set. And an
ISR that the record names although it stays as it is: Kafka does so after an unclean election.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

import msgspec

from metadata.image.partition import Partition
from metadata.records import DIRECTORY_MIGRATING, NO_LEADER, PartitionChangeRecord
from tests.oracles.partition_changes import ours
from tests.oracles.partition_changes.differences import Difference, excused
from tests.oracles.partition_changes.drawing import draw_cases
from tests.oracles.partition_changes.lines import (
    PARTITION,
    TOPIC,
    Answer,
    Case,
    read_answer,
    show_case,
)

Ask = Callable[[Sequence[str]], list[str]]
"""Kafka's answers to lines."""

_KEPT_WRONG: Final = 100
_NOTHING: Final = PartitionChangeRecord(PARTITION, TOPIC)
FIELDS: Final = tuple(
    field
    for field in PartitionChangeRecord.__struct_fields__
    if field not in ("partition_id", "topic_id")
)


class Judged(NamedTuple):
    """How our answer to a case compares with Kafka's."""

    case: Case
    kafka: Answer
    ours: Answer
    differing: tuple[str, ...]
    """The fields of the record that differ, and `after` if the partitions behind it do."""
    excuses: tuple[Difference, ...]

    @property
    def wrong(self) -> bool:
        """Whether the answers differ and nothing explains it."""
        return bool(self.differing) and not self.excuses


class Tally:
    """What a comparison counted."""

    def __init__(self) -> None:
        self.compared = 0
        self.changed = 0
        """Cases for which Kafka gave a record."""
        self.excused: Counter[str] = Counter()
        """By the name of a difference."""
        self.wrong = 0
        self.first_wrong: list[Judged] = []
        """A hundred at most."""

    def add(self, judged: Judged) -> None:
        """Count one case."""
        self.compared += 1
        self.changed += judged.kafka.record is not None
        self.excused.update(one.name for one in judged.excuses)
        if judged.wrong:
            self.wrong += 1
            if len(self.first_wrong) < _KEPT_WRONG:
                self.first_wrong.append(judged)


def judge(case: Case, kafka: Answer, our: Answer) -> Judged:
    """Compare two answers to one case."""
    if kafka.after is None or our.after is None:
        return Judged(case, kafka, our, ("error",), ())
    theirs = _canonical(kafka.record, case.partition)
    mine = _canonical(our.record, case.partition)
    differing = tuple(field for field in FIELDS if getattr(theirs, field) != getattr(mine, field))
    if differing:
        excuses = excused(case, kafka.after, our.after, differing)
        return Judged(case, kafka, our, differing, excuses)
    # Kafka also writes a record if only an ELR's order changes. That raises Kafka's epoch alone.
    same_epochs = (kafka.record is None) == (our.record is None)
    if same_epochs and _sorted_elr(_tracked(kafka.after)) != _tracked(our.after):
        return Judged(case, kafka, our, ("after",), ())
    return Judged(case, kafka, our, (), ())


def judge_all(ask: Ask, cases: Sequence[Case]) -> list[Judged]:
    """Answer cases on both sides and compare."""
    theirs = map(read_answer, ask([show_case(case) for case in cases]))
    return list(map(judge, cases, theirs, ours.answers(cases)))


def compare(ask: Ask, dice: Random, count: int, batch: int = 5000) -> Iterator[Judged]:
    """Draw cases, and yield how the answers to each compare."""
    left: list[Partition] = []
    for start in range(0, count, batch):
        judged = judge_all(ask, draw_cases(dice, min(batch, count - start), left))
        left = [one.ours.after for one in judged if one.ours.after and _is_sound(one.ours.after)]
        yield from judged


def _canonical(record: PartitionChangeRecord | None, before: Partition) -> PartitionChangeRecord:
    """Return a record in which the same things look the same; one that changes nothing for None."""
    if record is None:
        return _NOTHING
    elr = record.eligible_leader_replicas
    if elr is not None:
        elr = tuple(sorted(elr))
    return msgspec.structs.replace(
        record,
        isr=None if record.isr == before.isr else record.isr,
        eligible_leader_replicas=None if elr == before.elr else elr,
    )


def _sorted_elr(partition: Partition) -> Partition:
    return msgspec.structs.replace(partition, elr=tuple(sorted(partition.elr)))


def _tracked(partition: Partition) -> Partition:
    """Return a partition whose directories are tracked, as Kafka reads those that are not."""
    if partition.directories:
        return partition
    return msgspec.structs.replace(
        partition, directories=(DIRECTORY_MIGRATING,) * len(partition.replicas)
    )


def _is_sound(partition: Partition) -> bool:
    """Return whether it follows the rules of a partition; `drawing` draws no other one."""
    replicas = {*partition.replicas}
    leader = partition.leader
    return (
        replicas >= {*partition.isr, *partition.elr, *partition.removing, *partition.adding}
        and not {*partition.isr} & {*partition.elr}
        and (leader == NO_LEADER or leader in partition.isr)
    )
