"""Reads back the JSON of a record: the proof that `record_to_json` loses nothing."""

from base64 import b64decode
from typing import Any

from metadata.codec import decode_record, encode_record
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES, Part, Record
from metadata.records.schema import FieldSchema, fields_of
from metadata.uuids import parse_uuid

_CLASSES = {f"{record_type_name(cls)} {cls.VERSION}": cls for cls in RECORD_CLASSES}


def record_from_json(value: dict[str, Any]) -> Record:
    """Return the record from what `record_to_json` returned with its secrets."""
    assert set(value) == {"type", "version", "data"}
    record = _struct(_CLASSES[f"{value['type']} {value['version']}"], value["data"])
    assert isinstance(record, Record)
    return decode_record(encode_record(record))


def _struct(owner: type[Record | Part], data: dict[str, Any]) -> Record | Part:
    fields = {field.json_name: field for field in fields_of(owner)}
    return owner(**{fields[name].name: _value(fields[name], data[name]) for name in data})


def _value(field: FieldSchema, value: Any) -> Any:
    if value is None:
        return None
    return tuple(_one(field, each) for each in value) if field.is_list else _one(field, value)


def _one(field: FieldSchema, value: Any) -> Any:
    if field.part:
        return _struct(field.part, value)
    if field.type_name == "uuid":
        return parse_uuid(value)
    if field.type_name in ("bytes", "sha256"):
        return b64decode(value, validate=True)
    if field.codes and isinstance(value, str):
        return int(field.codes[value])
    return float(value) if field.type_name == "float64" else value
