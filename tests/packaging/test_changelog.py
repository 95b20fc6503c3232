"""CHANGELOG.md has a section for this version and for each release, as Keep a Changelog has it."""

import re
import tomllib
from pathlib import Path

from packaging.version import Version

from logberg.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
TEXT = (ROOT / "CHANGELOG.md").read_text()
SECTIONS = {
    head: re.findall(r"^### (.+)\n\n(.*)", body, re.MULTILINE)
    for head, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
}
"""Of each version, its kinds of changes and the first line of each."""


def versions() -> list[str]:
    return [head.split()[0] for head in SECTIONS]


def test_the_first_section_is_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert versions()[0] == VERSION == project["version"]


def test_each_release_has_a_section() -> None:
    released = {path.name.split("-")[1] for path in (ROOT / "tests" / "releases").glob("*.whl")}
    assert released
    assert released <= set(versions())


def test_versions_fall_and_only_the_first_is_unreleased() -> None:
    assert versions() == sorted(versions(), key=Version, reverse=True)
    first, *others = (head.partition(" — ")[2] for head in SECTIONS)
    dated = re.compile(r"\d{4}-\d\d-\d\d")
    assert first == "unreleased" or dated.fullmatch(first)
    assert all(other == "" or dated.fullmatch(other) for other in others)  # 0.1.0 has no date


def test_changes_stand_below_their_kinds() -> None:
    for head, kinds in SECTIONS.items():
        names = [name for name, _ in kinds]
        assert names, f"{head} tells nothing"
        assert names == [kind for kind in KINDS if kind in names], head
        assert all(first.startswith("- ") for _, first in kinds), head
