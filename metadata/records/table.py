"""Writes the docs page of records, docs/format/records.md, from the classes.

Rule: nobody edits the page. A test compares it with this module's output; run the module to write
the page anew.
"""

from collections.abc import Iterator
from enum import IntEnum

from metadata.records import RECORD_CLASSES, VERSIONS_PER_TYPE, Part, Record
from metadata.records.schema import REQUIRED, FieldSchema, fields_of

_HEAD = """\
# Records

<!-- Written by metadata/records/table.py; change the classes, not this page. -->

A batch carries its records as one MessagePack array of records, in the order of their offsets.
A record is an array, too: first its *kind*, then its fields in the order of the tables below.

    kind = type id * 100 + version

So `302` is type 3 (PartitionRecord) in version 2. Type ids below 1000 are Kafka's; 1000 to 1999
are Logberg's own; from 2000 on, the id is 2000 plus Kafka's control type. Versions are those of
Kafka's schemas. Logberg writes and reads one version of each record, with all its fields. A reader
refuses a kind that isn't on this page, and never skips it. The types 1003 to 1005 are allowed only
in snapshots; a reader of a log refuses them.

The encoding is canonical, and a reader refuses any other:

- every field is there, also one that has its default; no array has more elements than its table;
- integers in their shortest form; `float64` always as float 64 (`cb`), which no other field uses;
- text as the shortest `str`, bytes as the shortest `bin`, arrays in their shortest form, no maps;
- `uuid` is `bin` of 16 bytes, `sha256` is `bin` of 32 bytes; null is nil;
- a list is an array; a part (named in **bold**) is an array of its fields, without a kind.

Fields without a default come first, in the order of Kafka's schema; those with one follow. The
default is the value that leaves the field unchanged, or the value that Kafka uses where an older
version of the schema lacks the field.

Test vectors: `tests/golden/records.json` has each record as bytes and as JSON.
"""


def render() -> str:
    """Return the whole page."""
    return "".join([_HEAD, *_index(), *_details(), *_codes()])


def type_text(field: FieldSchema) -> str:
    """Return the type of a field as the tables write it."""
    name = f"**{field.type_name}**" if field.part else field.type_name
    text = f"list of {name}" if field.is_list else name
    return f"{text}, or nil" if field.nullable else text


def _index() -> Iterator[str]:
    yield "\n## Index\n\n"
    yield "| type id | version | kind | record | meaning |\n|---|---|---|---|---|\n"
    for record in RECORD_CLASSES:
        kind = record.TYPE_ID * VERSIONS_PER_TYPE + record.VERSION
        name = f"[{record.__name__}](#{record.__name__.lower()})"
        yield f"| {record.TYPE_ID} | {record.VERSION} | {kind} | {name} | {_first_line(record)} |\n"


def _details() -> Iterator[str]:
    shown: set[type[Part]] = set()
    for record in RECORD_CLASSES:
        yield f"\n## {record.__name__}\n\nType {record.TYPE_ID}, version {record.VERSION}. "
        yield f"{_first_line(record)}\n"
        yield from _fields(record, 1)
        yield from _parts(record, shown)


def _parts(owner: type[Record | Part], shown: set[type[Part]]) -> Iterator[str]:
    for field in fields_of(owner):
        if field.part and field.part not in shown:
            shown.add(field.part)
            yield f"\n**{field.part.__name__}**: {_first_line(field.part)}\n"
            yield from _fields(field.part, 0)
            yield from _parts(field.part, shown)


def _fields(owner: type[Record | Part], first: int) -> Iterator[str]:
    fields = fields_of(owner)
    if not fields:
        yield "\nNo fields.\n"
        return
    yield "\n| position | field | type | default |\n|---|---|---|---|\n"
    for position, field in enumerate(fields, first):
        default = "" if field.default is REQUIRED else _default(field.default)
        yield f"| {position} | {field.json_name} | {type_text(field)}{_link(field)} | {default} |\n"


def _link(field: FieldSchema) -> str:
    return f" ([{field.codes.__name__}](#{field.codes.__name__.lower()}))" if field.codes else ""


def _default(value: object) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "empty" if value == () else str(value)


def _codes() -> Iterator[str]:
    tables: dict[str, type[IntEnum]] = {}
    for record in RECORD_CLASSES:
        for field in _all_fields(record):
            if field.codes:
                tables[field.codes.__name__] = field.codes
    yield "\n## Codes\n\nA number that has no name here is allowed.\n"
    for name, codes in sorted(tables.items()):
        yield f"\n### {name}\n\n"
        yield ", ".join(f"{code.value} {code.name}" for code in codes) + "\n"


def _all_fields(owner: type[Record | Part]) -> Iterator[FieldSchema]:
    for field in fields_of(owner):
        yield field
        if field.part:
            yield from _all_fields(field.part)


def _first_line(documented: type) -> str:
    return (documented.__doc__ or "").partition("\n")[0]


if __name__ == "__main__":
    print(render(), end="")  # noqa: T201 - what this module is run for
