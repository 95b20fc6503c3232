"""Turns Kafka's records into ours, and ours into Kafka's again: the way back of the projection.

Rule: as in the projection, a field is the one of the same name, without regard to case and
underscores. Only tests need this way.
"""

from typing import Any, NamedTuple, cast

from kafka_listener.projection.batch_projection import control_record
from kafka_listener.projection.kafka_fields import fields_writer
from kafka_listener.wire.messages import (
    decode_message,
    decode_metadata_record,
    encode_metadata_record,
    message_schema,
)
from kafka_listener.wire.schema import Fields, StructSchema
from metadata.codec import decode_record, encode_record
from metadata.records import (
    RECORD_CLASSES,
    BeginEpochRecord,
    EpochVoter,
    KRaftVersionRecord,
    Record,
    VotersRecord,
)
from metadata.records.record import Part
from metadata.records.schema import fields_of

_CLASSES = {kind.__name__: kind for kind in RECORD_CLASSES}
_CONTROL = {5: KRaftVersionRecord, 6: VotersRecord}
LEADER_CHANGE = 2


class ComeBack(NamedTuple):
    """What became of Kafka's bytes."""

    name: str
    version: int
    record: Record
    data: bytes
    """Kafka's bytes of the record, written by us."""


def round_trip(value: bytes) -> ComeBack:
    """Take a data record of Kafka's to our record, to our bytes, and back."""
    name, version, fields = decode_metadata_record(value)
    assert encode_metadata_record(name, version, fields) == value, "the codec alone"
    record = stored(record_of(name, fields))
    written = fields_writer(type(record), version)(record)
    return ComeBack(name, version, record, encode_metadata_record(name, version, written))


def control_round_trip(key: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Take a control record of Kafka's to our record, to our bytes, and back: key and value."""
    kind = int.from_bytes(key[2:4], "big")
    if kind == LEADER_CHANGE:
        said = decode_message("LeaderChangeMessage", 0, value)
        record: Record = BeginEpochRecord(
            said["LeaderId"], _voters(said["Voters"]), _voters(said["GrantingVoters"])
        )
    else:
        known = _CONTROL[kind]
        record = _built(
            known, message_schema(known.__name__).struct, decode_message(known.__name__, 0, value)
        )
    again, written = control_record(stored(record))
    assert again is not None
    return again, written


def stored(record: Record) -> Record:
    """Return what our log gives back of a record."""
    again: Record = decode_record(encode_record(record))
    assert again == record
    return again


def record_of(name: str, fields: Fields) -> Record:
    """Return our record for the fields of Kafka's of this name."""
    return _built(_CLASSES[name], message_schema(name).struct, fields)


def _built(owner: type[Any], schema: StructSchema, fields: Fields) -> Any:
    names = {name.lower(): name for name in schema.by_name}
    given: dict[str, Any] = {}
    for field in fields_of(cast("Any", owner)):
        name = names.get(field.name.replace("_", ""))
        if name is None:
            continue
        struct = schema.by_name[name].struct
        given[field.name] = _value(fields[name], field.part, struct)
    return owner(**given)


def _value(value: Any, part: type[Part] | None, struct: StructSchema | None) -> Any:
    if isinstance(value, list):
        return tuple(_value(each, part, struct) for each in value)
    if part is None or value is None:
        return value
    assert struct is not None
    return _built(part, struct, value)


def _voters(said: list[Fields]) -> tuple[EpochVoter, ...]:
    return tuple(EpochVoter(voter["VoterId"], bytes(16)) for voter in said)
