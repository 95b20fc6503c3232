"""Shows our log as Kafka's metadata log: the same offsets, and only records that Kafka has.

Rules:

- A record of Kafka's is that record, with Kafka's names, in the version that the finalised
  metadata.version allows. The level is that of the log itself, before the record.
- What is not Kafka's, and what Kafka has as a control record, is a NoOpRecord at its offset: these
  change nothing in Kafka's image. So does the level of a feature that is ours.
- A transaction goes through as it is if it ended. All records of one that was aborted, or that a
  new epoch discarded, are NoOpRecords. One that is still open is held back. For Kafka's loader
  knows no discarding, and keeps an aborted transaction's changes if a record follows it (ADR 0037).
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from metadata.features import BASE, LOGBERG_VERSION, METADATA_VERSION
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    ZkMigrationStateRecord,
)
from metadata.records.record import Part
from metadata.records.schema import FieldSchema, fields_of
from metadata.uuids import uuid_text

_OURS_FROM: Final = 1000
"""Type ids from here on are ours, or Kafka's control records."""
_VERSIONS: Final[dict[type[Record], tuple[tuple[int, int], ...]]] = {
    RegisterBrokerRecord: ((30, 4), (17, 3), (8, 2), (0, 1)),
    PartitionRecord: ((23, 2), (17, 1), (0, 0)),
    PartitionChangeRecord: ((23, 2), (17, 1), (0, 0)),
    BrokerRegistrationChangeRecord: ((30, 3), (17, 2), (0, 1)),
}
"""(from this level of metadata.version on, version of the record), newest first."""
KafkaRecord = tuple[int, int, dict[str, Any]]
"""Kafka's type id, the version, and the fields as Kafka's JSON has them."""


class LogBatch(NamedTuple):
    """A batch of our log."""

    base_offset: int
    epoch: int
    timestamp_ms: int
    records: tuple[Record, ...]

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.records)


def lost_offsets(batches: Sequence[LogBatch]) -> frozenset[int]:
    """Return the offsets of all records of transactions that did not end, or not yet."""
    lost: set[int] = set()
    began: int | None = None
    end = 0
    for batch in batches:
        end = batch.end_offset
        for offset, record in enumerate(batch.records, batch.base_offset):
            if isinstance(record, BeginTransactionRecord):
                began = offset
            elif isinstance(record, EndTransactionRecord):
                began = None
            elif isinstance(record, AbortTransactionRecord | BeginEpochRecord):
                if began is not None:
                    lost.update(range(began, offset + 1))
                began = None
    return frozenset(lost if began is None else {*lost, *range(began, end)})


def projected(batches: Sequence[LogBatch]) -> Iterator[list[Any]]:
    """Yield each batch of a log as the oracle reads it."""
    lost = lost_offsets(batches)
    level = BASE[METADATA_VERSION]
    for batch in batches:
        rows = []
        for offset, record in enumerate(batch.records, batch.base_offset):
            shown = record if is_kafkas(record) and offset not in lost else NoOpRecord()
            rows.append(in_kafkas_words(shown, level))
            if isinstance(shown, FeatureLevelRecord) and shown.name == METADATA_VERSION:
                level = shown.feature_level
        yield [batch.base_offset, batch.epoch, batch.timestamp_ms, rows]


def is_kafkas(record: Record) -> bool:
    """Return whether Kafka's image has a place for what a record says."""
    if isinstance(record, FeatureLevelRecord) and record.name == LOGBERG_VERSION:
        return False
    return record.TYPE_ID < _OURS_FROM and not isinstance(record, ZkMigrationStateRecord)


def in_kafkas_words(record: Record, level: int) -> KafkaRecord:
    """Return a record with Kafka's names, in the version of a level of metadata.version."""
    versions = _VERSIONS.get(type(record), ((0, record.VERSION),))
    version = next(version for since, version in versions if level >= since)
    return record.TYPE_ID, version, _struct(record)


def question(batches: Sequence[LogBatch], flush: Iterable[int]) -> str:
    """Return the line for the oracle: the whole log, and after which batches it shows its image."""
    asked = {"flush": sorted(flush), "batches": list(projected(batches))}
    return json.dumps(asked, separators=(",", ":"))


def _struct(struct: Record | Part) -> dict[str, Any]:
    return {name: write(getattr(struct, field)) for field, name, write in _writers(type(struct))}


@cache
def _writers(owner: type[Record | Part]) -> list[tuple[str, str, Any]]:
    return [(field.name, field.json_name, _writer(field)) for field in fields_of(owner)]


def _writer(field: FieldSchema) -> Any:
    one = _one(field)

    def write(value: Any) -> Any:
        if value is None:
            return None
        return [one(each) for each in value] if field.is_list else one(value)

    return write


def _one(field: FieldSchema) -> Any:
    if field.part:
        return _struct
    if field.type_name == "uuid":
        return uuid_text
    if field.type_name == "bytes":
        return lambda value: b64encode(value).decode("ascii")
    return lambda value: value
