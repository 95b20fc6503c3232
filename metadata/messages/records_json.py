"""Converts records to JSON, in the form of Kafka's own dump tool.

`{"type": "TOPIC_RECORD", "version": 0, "data": {"name": "a", "topicId": "…22 characters…"}}`.
Rule: the JSON holds everything except secrets, so that reading it back would give an equal record;
a test does that. Uuids are text, and other bytes are base64. A code is its name, if it has one. A
field that has its default is left out, unless it is a bool. A secret is written as `***`, and the
list `redacted` beside `data` names its field. With `show_secrets` it is written as it is.
"""

import math
import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, Final

from metadata.records import Part, Record
from metadata.records.declaring import REDACTED
from metadata.records.schema import FieldSchema, camel, fields_of
from metadata.uuids import uuid_text

_BINARY: Final = ("bytes", "sha256")


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
