"""The docs page of records agrees with the classes."""

from pathlib import Path

from metadata.records import RECORD_CLASSES
from metadata.records.schema import fields_of
from metadata.records.table import render

PAGE = Path(__file__).parents[3] / "docs" / "format" / "records.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), (
        "write it anew: python -m metadata.records.table > docs/format/records.md"
    )


def test_the_page_has_every_record_and_every_field() -> None:
    page = render()
    for cls in RECORD_CLASSES:
        section = page.partition(f"\n## {cls.__name__}\n")[2].partition("\n## ")[0]
        assert f"Type {cls.TYPE_ID}, version {cls.VERSION}." in section
        for position, field in enumerate(fields_of(cls), 1):
            assert f"| {position} | {field.json_name} | " in section


def test_field_names_are_kafkas() -> None:
    names = {f.json_name for cls in RECORD_CLASSES for f in fields_of(cls)}
    assert {"eligibleLeaderReplicas", "lastKnownElr", "kRaftVersion", "endPoints"} <= names
