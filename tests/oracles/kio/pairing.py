"""Which class of kio stands for which message of ours, and a message's fields as kio's entity.

Rule: kio has the fields of one version in the order of Kafka's schema, with types of its own: error
codes, durations, times with a zone, None for the zero uuid. Nothing is skipped: a class with other
fields than ours is an error.
"""

import dataclasses
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, get_args
from uuid import UUID

from kio.schema.errors import ErrorCode

from kafka_listener.wire.messages import api_name, message_schema
from kafka_listener.wire.schema import Fields, FieldSchema, StructSchema

_ROLES: Final = ("Request", "Response")


class Pair(NamedTuple):
    """One message in one version, and kio's class of it; None: kio has none."""

    name: str
    version: int
    kios: type[Any] | None


def pairs_of(api_key: int, versions: range) -> Iterator[Pair]:
    """Yield request and response of an api in some versions."""
    for version in versions:
        for role in _ROLES:
            name = f"{api_name(api_key)}{role}"
            yield Pair(name, version, kio_class(name, version))


def header_pairs() -> Iterator[Pair]:
    """Yield the headers, and the principal inside envelopes."""
    for name, versions in (("RequestHeader", (1, 2)), ("ResponseHeader", (0, 1))):
        for version in versions:
            yield Pair(name, version, _found(f"{_snake(name)}.v{version}.header", name))
    yield Pair(
        "DefaultPrincipalData", 0, _found("default_principal_data.v0.data", "DefaultPrincipalData")
    )


@cache
def kio_class(name: str, version: int) -> type[Any] | None:
    """Return kio's class of a request or response in one version; None: it has none."""
    role = next(role for role in _ROLES if name.endswith(role))
    stem = _snake(name.removesuffix(role))
    return _found(f"{stem}.v{version}.{role.lower()}", name)


def _found(module: str, name: str) -> type[Any] | None:
    try:
        found: type[Any] = getattr(import_module(f"kio.schema.{module}"), name)
    except ModuleNotFoundError:
        return None
    return found


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class PairedField(NamedTuple):
    """A field of ours and of kio's."""

    ours: FieldSchema
    kios: dataclasses.Field[Any]

    @property
    def kind(self) -> str:
        """What kio takes the value for."""
        kind: str = self.kios.metadata.get("kafka_type", "struct")
        return kind

    @property
    def part(self) -> type[Any] | None:
        """kio's class of a struct, or of an array's elements."""
        return _dataclass_in(self.kios.type)

    @property
    def may_be_none(self) -> bool:
        """kio's type allows None, for the value or for the array's elements."""
        return type(None) in _all_args(self.kios.type)


def paired_fields(name: str, version: int, kios: type[Any]) -> tuple[PairedField, ...]:
    """Return the fields of a message. Raises ValueError if the two don't have the same number."""
    return _paired(message_schema(name).struct, version, kios)


def paired_within(field: PairedField, version: int) -> tuple[PairedField, ...]:
    """Return the fields of a struct in a message."""
    assert field.ours.struct is not None
    assert field.part is not None, f"{field.ours.name} is no struct for kio"
    return _paired(field.ours.struct, version, field.part)


def _paired(struct: StructSchema, version: int, kios: type[Any]) -> tuple[PairedField, ...]:
    ours = [field for field in struct.fields if version in field.versions]
    theirs = dataclasses.fields(kios)
    if len(ours) != len(theirs):
        names = [field.name for field in ours], [field.name for field in theirs]
        raise ValueError(f"{kios.__name__} {version}: ours {names[0]}, kio's {names[1]}")
    return tuple(map(PairedField, ours, theirs))


def _dataclass_in(found: Any) -> type[Any] | None:
    if dataclasses.is_dataclass(found):
        return found if isinstance(found, type) else None
    return next(filter(None, map(_dataclass_in, get_args(found))), None)


def _all_args(found: Any) -> set[Any]:
    inside = get_args(found)
    return {found}.union(*map(_all_args, inside)) if inside else {found}


def entity_of(name: str, version: int, kios: type[Any], fields: Fields) -> Any:
    """Return kio's entity with these fields."""
    return _entity(paired_fields(name, version, kios), version, kios, fields)


def _entity(paired: tuple[PairedField, ...], version: int, kios: type[Any], fields: Fields) -> Any:
    return kios(
        **{field.kios.name: _value(field, version, fields[field.ours.name]) for field in paired}
    )


def _value(field: PairedField, version: int, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_value(field, version, each) for each in value)
    if value is None:
        return None
    match field.kind:
        case "struct":
            assert field.part is not None
            return _entity(paired_within(field, version), version, field.part, value)
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else datetime.fromtimestamp(value / 1000, UTC)
        case "uuid":
            return UUID(bytes=value) if any(value) else None
    return value
