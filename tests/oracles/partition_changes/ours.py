"""Our answers: what our rules make of a case, and what replay makes of the record."""

from collections.abc import Sequence
from typing import Final

import msgspec

from controller.managers.partition_change import change_partition
from metadata.image import EMPTY, MetadataDelta
from metadata.image.partition import Partition
from metadata.records import (
    DIRECTORY_UNASSIGNED,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.oracles.partition_changes.lines import PARTITION, TOPIC, Answer, Case

_TOPIC_RECORD: Final = TopicRecord("t", TOPIC)


def answers(cases: Sequence[Case]) -> list[Answer]:
    """Decide each case, then replay the records."""
    return replayed(cases, [decide(case) for case in cases])


def replayed(
    cases: Sequence[Case], records: Sequence[PartitionChangeRecord | None]
) -> list[Answer]:
    """Replay each record on its case's partition, all at once."""
    delta = MetadataDelta(EMPTY)
    delta.replay(_TOPIC_RECORD, 0)
    for number, (case, record) in enumerate(zip(cases, records, strict=True)):
        delta.replay(_as_record(number, case.partition), 0)
        if record is not None:
            delta.replay(msgspec.structs.replace(record, partition_id=number), 0)
    delta.finish_batch(1, 0, 0)
    partitions = delta.apply().topics.partitions
    return [Answer(record, partitions[TOPIC, number]) for number, record in enumerate(records)]


def decide(case: Case) -> PartitionChangeRecord | None:
    """Return the record that our rules give for a case."""
    change = case.change
    return change_partition(
        TOPIC,
        PARTITION,
        case.partition,
        change.target,
        acceptable=change.alive.__contains__,
        rules=change.rules,
        unclean_shutdown=change.lost,
        default_directory=lambda broker: change.defaults.get(broker, DIRECTORY_UNASSIGNED),
    )


def _as_record(number: int, partition: Partition) -> PartitionRecord:
    return PartitionRecord(
        number,
        TOPIC,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing,
        adding_replicas=partition.adding,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leader_recovery_state=partition.leader_recovery_state,
        directories=partition.directories,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
    )
