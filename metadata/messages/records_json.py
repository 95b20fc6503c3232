"""Converts records to JSON, in the form of Kafka's own dump tool, and back.

`{"type": "TOPIC_RECORD", "version": 0, "data": {"name": "a", "topicId": "…22 characters…"}}`.
Rule: the JSON holds everything except secrets, so that reading it back gives an equal record. Uuids
are text, and other bytes are base64. A code is its name, if it has one. A field that has its
default is left out, unless it is a bool. A secret is written as `***`, and the list `redacted`
beside `data` names its field. Such a record can't be read back. With `show_secrets` it can.
"""

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeVar

from metadata.codec import RecordDecodeError, decode_record, encode_record
from metadata.records import RECORD_CLASSES, Part, Record
from metadata.records.declaring import REDACTED
from metadata.records.schema import REQUIRED, FieldSchema, camel, fields_of
from metadata.uuids import UuidError, parse_uuid, uuid_text

_S = TypeVar("_S", Record, Part)
_BINARY: Final = ("bytes", "sha256")


class RecordJsonError(ValueError):
    """The JSON is not that of a record. The message names the field and what was expected."""


@cache
def record_type_name(record_class: type[Record]) -> str:
    """Return the name of a record's type as Kafka prints it, such as TOPIC_RECORD."""
    name = record_class.__name__.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def record_to_json(record: Record, *, show_secrets: bool = False) -> dict[str, Any]:
    """Return a record as values that any JSON writer takes, with `***` for each secret."""
    hidden = () if show_secrets else record.secret_fields()
    data = _struct_to_json(record)
    shown = {
        "type": record_type_name(type(record)),
        "version": record.VERSION,
        "data": data,
    }
    if hidden:
        shown["redacted"] = names = [camel(name) for name in hidden]
        data.update(dict.fromkeys(names, REDACTED))
    return shown


def record_from_json(value: object) -> Record:
    """Return the record from what `record_to_json` returned. Raises RecordJsonError."""
    if isinstance(value, Mapping) and value.get("redacted"):
        raise RecordJsonError(
            f"the fields {value['redacted']} are redacted, so the record can't be read back"
        )
    if not isinstance(value, Mapping) or set(value) != {"type", "version", "data"}:
        raise RecordJsonError("expected an object with the fields type, version and data")
    record_class = _by_name().get(f"{value['type']} {value['version']}")
    if record_class is None:
        raise RecordJsonError(f"unknown record {value['type']!r} version {value['version']!r}")
    record = _struct_from_json(record_class, value["data"], str(value["type"]))
    try:
        return decode_record(encode_record(record))
    except (RecordDecodeError, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise RecordJsonError(f"{value['type']}: {error}") from error


@cache
def _by_name() -> dict[str, type[Record]]:
    return {f"{record_type_name(cls)} {cls.VERSION}": cls for cls in RECORD_CLASSES}


def _struct_to_json(struct: Record | Part) -> dict[str, Any]:
    data = {}
    for get, json_name, default, always, write in _writers(type(struct)):
        value = get(struct)
        if always or value != default:
            data[json_name] = value if value is None or write is None else write(value)
    return data


@cache
def _writers(
    owner: type[Record | Part],
) -> tuple[tuple[Callable[[Any], Any], str, Any, bool, Callable[[Any], Any] | None], ...]:
    """Return (getter, JSON name, default, whether to write the default, writer) for each field.

    The result is cached by class, since a dump may have millions of records of a few classes.
    """
    return tuple(
        (attrgetter(f.name), f.json_name, f.default, f.type_name == "bool", _writer(f))
        for f in fields_of(owner)
    )


def _writer(field: FieldSchema) -> Callable[[Any], Any] | None:
    one = _one_writer(field)
    if not field.is_list:
        return one
    return list if one is None else lambda values: [one(value) for value in values]


def _one_writer(field: FieldSchema) -> Callable[[Any], Any] | None:
    """Return the function that converts a value to JSON; None: the value needs no conversion."""
    if field.part:
        return _struct_to_json
    if field.type_name == "uuid":
        return uuid_text
    if field.type_name in _BINARY:
        return lambda value: b64encode(value).decode("ascii")
    if field.codes:
        names = {int(code): code.name for code in field.codes}
        return lambda value: names.get(value, value)
    if field.type_name == "float64":
        return lambda value: value if math.isfinite(value) else str(value)
    return None


def _struct_from_json(owner: type[_S], data: object, where: str) -> _S:
    if not isinstance(data, Mapping):
        raise RecordJsonError(f"{where}: expected an object, got {data!r}")
    fields = {field.json_name: field for field in fields_of(owner)}
    if unknown := sorted(str(name) for name in data if name not in fields):
        raise RecordJsonError(f"{where}: unknown field {unknown[0]}")
    values = {}
    for name, field in fields.items():
        if name in data:
            values[field.name] = _value_from_json(field, data[name], f"{where}.{name}")
        elif field.default is REQUIRED:
            raise RecordJsonError(f"{where}: missing field {name}")
    return owner(**values)


def _value_from_json(field: FieldSchema, value: object, where: str) -> Any:
    if value is None:
        if not field.nullable:
            raise RecordJsonError(f"{where}: expected {field.type_name}, got null")
        return None
    if not field.is_list:
        return _from_json(field, value, where)
    if not isinstance(value, list | tuple):
        raise RecordJsonError(f"{where}: expected a list, got {value!r}")
    return tuple(_from_json(field, v, f"{where}[{i}]") for i, v in enumerate(value))


def _from_json(field: FieldSchema, value: Any, where: str) -> Any:
    if field.part:
        return _struct_from_json(field.part, value, where)
    try:
        if field.type_name == "uuid":
            return parse_uuid(value)
        if field.type_name in _BINARY:
            return b64decode(value, validate=True)
        if field.codes and isinstance(value, str):
            return int(field.codes[value])
        if field.type_name == "float64":
            return float(value)
    except UuidError as error:
        raise RecordJsonError(f"{where}: {error}") from error
    except (KeyError, ValueError, TypeError) as error:
        raise RecordJsonError(f"{where}: expected {field.type_name}, got {value!r}") from error
    return value
