"""The bytes of every record, written down: logs that hold them must be readable for ever."""

import json
from pathlib import Path
from typing import Any

import msgpack
import pytest

from metadata.codec import decode_records, encode_records
from metadata.messages.records_json import record_to_json, record_type_name
from metadata.records import RECORD_CLASSES, Part, Record
from metadata.records.schema import fields_of
from tests.golden.records_read import record_from_json
from tests.golden.records_write import VECTORS, render

PATH = Path(__file__).parents[2] / "golden" / "records.json"
GOLDEN: list[dict[str, Any]] = json.loads(PATH.read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", GOLDEN, ids=lambda vector: vector["what"])
def test_a_vector_decodes_to_its_records_and_back(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    records = decode_records(data)
    assert [record_to_json(record, show_secrets=True) for record in records] == vector["records"]
    assert [record_from_json(value) for value in vector["records"]] == records
    assert encode_records(records) == data


@pytest.mark.parametrize("vector", GOLDEN, ids=lambda vector: vector["what"])
def test_a_reader_that_knows_only_the_page_reads_the_same(vector: dict[str, Any]) -> None:
    plain = msgpack.unpackb(bytes.fromhex(vector["hex"]), raw=False)
    records = decode_records(bytes.fromhex(vector["hex"]))
    assert len(plain) == len(records)
    for (kind, *fields), record in zip(plain, records, strict=True):
        type_id, version = divmod(kind, 100)
        assert (type_id, version) == (type(record).TYPE_ID, type(record).VERSION)
        _assert_fields(fields, record)
    assert msgpack.packb(plain, use_bin_type=True).hex() == vector["hex"]


def test_there_is_a_vector_for_every_record() -> None:
    there = {value["type"] for vector in GOLDEN for value in vector["records"]}
    assert there == {record_type_name(cls) for cls in RECORD_CLASSES}


def test_every_field_stands_in_a_vector_with_and_without_its_default() -> None:
    seen: dict[str, set[str]] = {}
    for _, records in VECTORS:
        for record in records:
            for field in fields_of(type(record)):
                if field.nullable or field.is_list:
                    value = getattr(record, field.name)
                    kind = "none" if value is None else "filled" if value else "empty"
                    seen.setdefault(f"{type(record).__name__}.{field.name}", set()).add(kind)
    must_be_none = {
        f"{cls.__name__}.{field.name}"
        for cls in RECORD_CLASSES
        for field in fields_of(cls)
        if field.nullable
    }
    assert {name for name, kinds in seen.items() if "none" in kinds} == must_be_none
    assert {name for name, kinds in seen.items() if "filled" in kinds} == set(seen)


def test_the_file_is_what_its_writer_writes() -> None:
    assert PATH.read_text(encoding="utf-8") == render()


def _assert_fields(plain: list[Any], struct: Record | Part) -> None:
    fields = fields_of(type(struct))
    assert len(plain) == len(fields)
    for got, field in zip(plain, fields, strict=True):
        expected = getattr(struct, field.name)
        if field.part is not None:
            for part, its in zip(got if field.is_list else [got], _as_list(expected), strict=True):
                _assert_fields(part, its)
        else:
            assert (tuple(got) if field.is_list and got is not None else got) == expected


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]
