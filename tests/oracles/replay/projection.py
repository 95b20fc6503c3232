"""Shows our log as Kafka's metadata log in JSON, for the oracle.

The rules are the product's (`kafka_listener/projection`, ADR 0071): which records Kafka has, in
which version, and which transactions are not shown. Only here, a transaction that is still open is
shown as NoOpRecords: the oracle gets a record for each offset.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from kafka_listener.projection.log_facts import LogFacts
from kafka_listener.projection.record_versions import is_shown, version_at
from metadata.records import NoOpRecord, Record
from metadata.records.record import Part
from metadata.records.schema import FieldSchema, fields_of
from metadata.uuids import uuid_text

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


def projected(batches: Sequence[LogBatch]) -> Iterator[list[Any]]:
    """Yield each batch of a log as the oracle reads it."""
    facts = LogFacts(batches[0].base_offset if batches else 0)
    for batch in batches:
        facts.read(batch.base_offset, batch.records)
    for batch in batches:
        lost = facts.lost_within(batch.base_offset, batch.end_offset)
        rows = []
        for offset, record in enumerate(batch.records, batch.base_offset):
            hidden = offset >= facts.settled or any(one.start <= offset < one.end for one in lost)
            shown = record if is_shown(record) and not hidden else NoOpRecord()
            rows.append(in_kafkas_words(shown, facts.level_at(offset)))
        yield [batch.base_offset, batch.epoch, batch.timestamp_ms, rows]


def in_kafkas_words(record: Record, level: int) -> KafkaRecord:
    """Return a record with Kafka's names, in the version of a level of metadata.version."""
    return record.TYPE_ID, version_at(type(record), level), _struct(record)


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
