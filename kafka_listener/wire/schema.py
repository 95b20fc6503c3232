"""A message's schema, parsed from Kafka's JSON: fields, versions, defaults.

Rule: what a schema says is asked here only. The compilers in `encoding.py` and `decoding.py` see
the fields of one version, in the order of the wire.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Self

Fields = dict[str, Any]
"""One message or struct, decoded: keys are Kafka's field names exactly as in the schema
("TopicName"), arrays are lists, structs are Fields, a uuid is 16 bytes, null is None."""

ELEMENTS_MAX: Final = 100_000
"""The elements of all arrays of one request together."""
ZERO_UUID: Final = bytes(16)
STRING_BYTES_MAX: Final = 0x7FFF
"""Kafka refuses longer strings, also where their length could be written."""
FIXED: Final[Mapping[str, str]] = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Types whose encodings always take the same number of bytes, with their codes in `struct`."""
_EMPTY: Final[Mapping[str, Any]] = {"bool": False, "uuid": ZERO_UUID, "float64": 0.0, "string": ""}


class VersionRange(NamedTuple):
    """Versions from `first` to `last`, both included; none if `last` is lower."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """Parse Kafka's text: "3", "1-4", "2+", "none"; None is "none"."""
        if text is None or text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), 2**15 - 1)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


class FieldSchema(NamedTuple):
    """One field of a struct, in all versions."""

    name: str
    type: str
    """A scalar's name, "records", "bytes", or "struct"; of an array, its elements' type."""
    array: bool
    struct: "StructSchema | None"
    versions: VersionRange
    nullable: VersionRange
    tagged: VersionRange
    tag: int
    flexible: VersionRange | None
    """The versions in which this field is compact, if it differs from its message."""
    ignorable: bool
    default: Any
    """An immutable value. None also stands for an empty array and a struct of defaults: see
    `null_by_default`."""
    null_by_default: bool

    def fresh(self) -> Any:
        """Return the default value, a new one if it can be changed."""
        if self.null_by_default:
            return None
        if self.array:
            return []
        if self.struct is not None:
            return {field.name: field.fresh() for field in self.struct.fields}
        return self.default

    def is_default(self) -> Callable[[Any], bool]:
        """Return a check whether a value is the default; a struct may lack fields."""
        default = self.fresh()
        if self.struct is None or self.array or self.null_by_default:
            return lambda value: bool(value == default)
        return lambda value: bool(value is not None and value.items() <= default.items())


class StructSchema(NamedTuple):
    """The fields of a message, or of a struct in it."""

    fields: tuple[FieldSchema, ...]
    by_name: Mapping[str, FieldSchema]

    def in_order(self, version: int, *, flexible: bool) -> Iterator[FieldSchema]:
        """Yield the fields that stand one after another in a version, without tags."""
        for field in self.fields:
            if version in field.versions and not (flexible and version in field.tagged):
                yield field

    def with_tags(self, version: int) -> list[FieldSchema]:
        """Return the tagged fields of a flexible version, by tag."""
        tagged = (f for f in self.fields if version in f.versions and version in f.tagged)
        return sorted(tagged, key=lambda field: field.tag)

    def absent(self, version: int) -> list[FieldSchema]:
        """Return the fields that a version lacks."""
        return [field for field in self.fields if version not in field.versions]


class MessageSchema(NamedTuple):
    """One of Kafka's messages: a request, a response, a header, a record, or data."""

    name: str
    kind: str
    api_key: int
    """-1 for data and headers; for a metadata record, its type."""
    versions: VersionRange
    flexible: VersionRange
    struct: StructSchema


def parse_message(schema: Mapping[str, Any]) -> MessageSchema:
    """Return a message from Kafka's JSON."""
    shared = {one["name"]: one["fields"] for one in schema.get("commonStructs", ())}
    return MessageSchema(
        schema["name"],
        schema["type"],
        schema.get("apiKey", -1),
        VersionRange.parse(schema["validVersions"]),
        VersionRange.parse(schema["flexibleVersions"]),
        _parse_struct(schema["fields"], shared),
    )


def _parse_struct(fields: list[dict[str, Any]], shared: Mapping[str, Any]) -> StructSchema:
    parsed = tuple(_parse_field(field, shared) for field in fields)
    return StructSchema(parsed, {field.name: field for field in parsed})


def _parse_field(field: Mapping[str, Any], shared: Mapping[str, Any]) -> FieldSchema:
    element = field["type"].removeprefix("[]")
    array = element != field["type"]
    struct = None
    if element[0].isupper():
        struct = _parse_struct(field.get("fields") or shared[element], shared)
        element = "struct"
    default = field.get("default")
    flexible = field.get("flexibleVersions")
    nullable = VersionRange.parse(field.get("nullableVersions"))
    without = default is None and element == "records" and nullable.last >= 0
    return FieldSchema(
        name=field["name"],
        type=element,
        array=array,
        struct=struct,
        versions=VersionRange.parse(field["versions"]),
        nullable=nullable,
        tagged=VersionRange.parse(field.get("taggedVersions")),
        tag=field.get("tag", -1),
        flexible=None if flexible is None else VersionRange.parse(flexible),
        ignorable=field.get("ignorable", False),
        default=None if array or struct is not None else _scalar(element, default),
        null_by_default=default == "null" or without,
    )


def _scalar(kind: str, default: Any) -> Any:
    """Return a scalar's default; Kafka writes some numbers as text, some in hexadecimal."""
    if default is None or default == "null":
        return _EMPTY.get(kind, b"" if kind in {"bytes", "records"} else 0)
    if kind == "bool":
        return str(default).lower() == "true"
    if kind in {"string", "bytes"}:
        return default
    return float(default) if kind == "float64" else int(str(default), 0)
