"""What a record looks like, read from the page that says so: docs/format/records.md.

Rule: the page is the only source. A field that the page lacks does not exist; a value that the
page's type does not allow is refused, and so is any record that is not in its one canonical form.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgpack

PAGE = Path(__file__).parents[2] / "docs" / "format" / "records.md"

Fields = dict[str, Any]
Check = Callable[[Any], bool]


class RefusedError(ValueError):
    """The log holds what the page does not allow."""


def _whole(low: int, high: int) -> Check:
    return lambda value: type(value) is int and low <= value <= high


def _sized(length: int) -> Check:
    return lambda value: type(value) is bytes and len(value) == length


PLAIN: dict[str, Check] = {
    "bool": lambda value: type(value) is bool,
    "bytes": lambda value: type(value) is bytes,
    "float64": lambda value: type(value) is float,
    "int8": _whole(-(2**7), 2**7 - 1),
    "int16": _whole(-(2**15), 2**15 - 1),
    "int32": _whole(-(2**31), 2**31 - 1),
    "int64": _whole(-(2**63), 2**63 - 1),
    "sha256": _sized(32),
    "string": lambda value: type(value) is str,
    "uint16": _whole(0, 2**16 - 1),
    "uuid": _sized(16),
}


class Schema:
    """The records of the page, by kind and by name."""

    def __init__(self, page: str) -> None:
        self._parts: dict[str, list[tuple[str, Check]]] = {}
        self._fields: dict[str, list[tuple[str, Check]]] = {}
        index = re.findall(r"^\| \d+ \| \d+ \| (\d+) \| \[(\w+)\]", page, re.MULTILINE)
        self.kinds = {name: int(kind) for kind, name in index}
        self.names = {kind: name for name, kind in self.kinds.items()}
        records = page.partition("\n## Index\n")[2].partition("\n## Codes\n")[0]
        for section in records.split("\n## ")[1:]:
            title, _, body = section.partition("\n")
            own, *parts = re.split(r"\n\*\*(\w+)\*\*: ", body)
            for name, text in zip(parts[::2], parts[1::2], strict=True):
                self._parts[name] = self._table(text)
            self._fields[title] = self._table(own)

    def _table(self, text: str) -> list[tuple[str, Check]]:
        rows = re.findall(r"^\| \d+ \| (\w+) \| (.+?) \| .*\|$", text, re.MULTILINE)
        return [(name, self._check(kind)) for name, kind in rows]

    def _check(self, kind: str) -> Check:
        kind = re.sub(r" \(\[.*\)", "", kind)
        if kind.endswith(", or nil"):
            inner = self._check(kind.removesuffix(", or nil"))
            return lambda value: value is None or inner(value)
        if kind.startswith("list of "):
            each = self._check(kind.removeprefix("list of "))
            return lambda value: type(value) is list and all(map(each, value))
        if kind.startswith("**"):
            part = kind.strip("*")
            return lambda value: self._is_part(part, value)
        return PLAIN[kind]

    def _is_part(self, part: str, value: object) -> bool:
        fields = self._parts[part]
        return (
            type(value) is list
            and len(value) == len(fields)
            and all(check(each) for (_, check), each in zip(fields, value, strict=True))
        )

    def named(self, record: list[Any]) -> tuple[str, Fields]:
        """Return a record's name and fields; refuse what the page doesn't have."""
        name = self.names.get(record[0]) if record else None
        if name is None:
            raise RefusedError(f"no record of the page has the kind of {record!r}")
        fields = self._fields[name]
        if len(record) != len(fields) + 1:
            raise RefusedError(f"{name} has {len(fields)} fields: {record!r}")
        for (field, check), value in zip(fields, record[1:], strict=True):
            if not check(value):
                raise RefusedError(f"{name}.{field} can't be {value!r}")
        return name, {field: value for (field, _), value in zip(fields, record[1:], strict=True)}

    def listed(self, name: str, fields: Fields) -> list[Any]:
        """Return a record as the array that is written."""
        return [self.kinds[name], *(fields[field] for field, _ in self._fields[name])]


SCHEMA = Schema(PAGE.read_text(encoding="utf-8"))


def encode(value: object) -> bytes:
    """Return the canonical bytes of an array or a map."""
    return msgpack.packb(value, use_bin_type=True)


def decode(data: bytes) -> Any:
    """Return what canonical bytes hold; refuse any other form."""
    value = msgpack.unpackb(data, raw=False, strict_map_key=False)
    if encode(value) != data:
        raise RefusedError("MessagePack that is not in its canonical form")
    return value


def decode_records(data: bytes) -> list[tuple[str, Fields]]:
    """Return the records of a batch or of a checkpoint's block, named."""
    return [SCHEMA.named(record) for record in decode(data)]


def encode_array(records: Iterable[tuple[str, Fields]]) -> bytes:
    """Return records as one array, as batches hold them."""
    return encode([SCHEMA.listed(name, fields) for name, fields in records])


def encode_records(records: Iterable[tuple[str, Fields]]) -> list[bytes]:
    """Return each record's canonical bytes."""
    return [encode(SCHEMA.listed(name, fields)) for name, fields in records]
