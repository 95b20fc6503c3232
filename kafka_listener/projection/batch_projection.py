"""One batch of our log as Kafka's record batches, with equal offsets.

Rules (ADR 0071):

- One record of ours is one record of Kafka's, at the same offset. A batch of ours becomes one Kafka
  batch for each run of control records and for each run of others, because Kafka's batches are one
  or the other. A run also ends before a Begin, so that an open transaction can be held back.
- What Kafka does not have, and the records of a transaction that did not end, are NoOpRecords.
- Epoch and time are those of our batch.

The bytes depend on the batch, the level before it, the transactions that did not end, and the
cluster key. They don't depend on where a reader began.
"""

from collections.abc import Generator, Sequence
from functools import cache
from typing import Final, NamedTuple

from kafka_listener.projection.clear_values import ClearValues
from kafka_listener.projection.kafka_fields import fields_writer
from kafka_listener.projection.log_facts import LogFacts, Lost, level_set_by
from kafka_listener.projection.record_versions import CONTROL_TYPES, is_shown, version_at
from kafka_listener.wire.messages import encode_message, encode_metadata_record
from kafka_listener.wire.record_batches import encode_batch
from kafka_listener.wire.schema import Fields
from ledger.batch import BatchHeader
from metadata.records import (
    BeginEpochRecord,
    BeginTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    Record,
)

_STEP: Final = 64
"""Records that are encoded between two pauses: a few milliseconds."""
_LEADER_CHANGE: Final = "LeaderChangeMessage"
KeyAndValue = tuple[bytes | None, bytes]


class ProjectedBatch(NamedTuple):
    """One of Kafka's record batches."""

    base_offset: int
    end_offset: int
    data: bytes


class _Run(NamedTuple):
    control: bool
    base_offset: int
    values: list[KeyAndValue]


class BatchProjection:
    """Projects batches."""

    def __init__(self, clear_values: ClearValues) -> None:
        self._clear_values = clear_values

    def project(
        self, header: BatchHeader, records: Sequence[Record], facts: LogFacts
    ) -> list[ProjectedBatch]:
        """Return Kafka's batches for a batch whose records `facts` has read.

        Records from `facts.settled` on are left out.
        """
        steps = self.project_in_steps(header, records, facts)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                projected: list[ProjectedBatch] = done.value
                return projected

    def project_in_steps(
        self, header: BatchHeader, records: Sequence[Record], facts: LogFacts
    ) -> Generator[None, None, list[ProjectedBatch]]:
        """Do what `project` does, with a pause every few milliseconds."""
        base, end = header.base_offset, min(header.end_offset, facts.settled)
        level, lost = facts.level_at(base), facts.lost_within(base, end)
        runs: list[_Run] = []
        for offset, record in enumerate(records[: max(end - base, 0)], base):
            control = type(record) in CONTROL_TYPES
            if (
                not runs
                or runs[-1].control is not control
                or type(record) is BeginTransactionRecord
            ):
                runs.append(_Run(control, offset, []))
            if control:
                shown = control_record(record)
            elif not is_shown(record) or (lost and _is_lost(offset, lost)):
                shown = _NO_OP
            else:
                shown = (None, self.value_of(record, level))
                if isinstance(record, FeatureLevelRecord):
                    level = level_set_by(record) or level
            runs[-1].values.append(shown)
            if not (offset - base + 1) % _STEP:
                yield
        return [_encoded(run, header) for run in runs]

    def value_of(self, record: Record, level: int) -> bytes:
        """Return a shown record as the value of a data record, at a level of metadata.version."""
        kind = type(record)
        version = _version_at(kind, level)
        fields = fields_writer(kind, version)(self._clear_values.of(record))
        return encode_metadata_record(kind.__name__, version, fields)


def control_record(record: Record) -> KeyAndValue:
    """Return key and value of one of Kafka's control records (KIP-595, 853).

    A BeginEpochRecord is a LeaderChangeMessage in version 0, as Kafka 4.3 writes it.
    """
    fields = _control_fields(record)
    name = _LEADER_CHANGE if isinstance(record, BeginEpochRecord) else type(record).__name__
    return control_key(CONTROL_TYPES[type(record)]), encode_message(name, 0, fields)


def _control_fields(record: Record) -> Fields:
    if isinstance(record, BeginEpochRecord):
        return {
            "LeaderId": record.leader_id,
            "Voters": [{"VoterId": voter.voter_id} for voter in record.voters],
            "GrantingVoters": [{"VoterId": voter.voter_id} for voter in record.granting_voters],
        }
    return fields_writer(type(record), 0)(record)


def control_key(kind: int) -> bytes:
    """Return the key of a control record: version 0 and Kafka's control type."""
    return b"\x00\x00" + kind.to_bytes(2, "big")


def encode_run(
    base_offset: int, epoch: int, timestamp_ms: int, values: list[KeyAndValue], *, control: bool
) -> ProjectedBatch:
    """Return a run of records as one of Kafka's batches."""
    data = encode_batch(base_offset, epoch, timestamp_ms, values, control=control)
    return ProjectedBatch(base_offset, base_offset + len(values), data)


def _encoded(run: _Run, header: BatchHeader) -> ProjectedBatch:
    return encode_run(
        run.base_offset, header.epoch, header.timestamp_ms, run.values, control=run.control
    )


def _is_lost(offset: int, lost: tuple[Lost, ...]) -> bool:
    return any(one.start <= offset < one.end for one in lost)


_version_at = cache(version_at)
_NO_OP: Final[KeyAndValue] = (None, encode_metadata_record("NoOpRecord", NoOpRecord.VERSION, {}))
