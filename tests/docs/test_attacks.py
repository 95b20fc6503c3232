"""SECURITY.md's list of attacks is a test suite: each row names tests, and they exist."""

import ast
import re
from functools import cache

import pytest

from tests.docs.source import ROOT

PAGE = (ROOT / "SECURITY.md").read_text()
ROW = re.compile(r"^\| ([A-Z]\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE)
PLANES = {"C": 10, "B": 8, "A": 13, "L": 8, "H": 7, "S": 5}
"""How many attacks each plane has at least: none is taken out in silence."""
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@cache
def names_in(file: str) -> set[str]:
    """The names of a file's tests, in classes too."""
    tree = ast.parse((ROOT / file).read_text())
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize(("number", "tests"), [(row[0], row[3]) for row in ROWS])
def test_an_attack_names_tests_that_exist(number: str, tests: str) -> None:
    named = TEST.findall(tests)
    assert named, f"{number} names no test"
    assert TEST.sub("", tests).strip(" ,") == "", f"{number}: {TEST.sub('', tests)}"
    missing = [f"{file}::{name}" for file, name in named if name not in names_in(file)]
    assert missing == []


def test_no_attack_is_lost() -> None:
    numbers = [row[0] for row in ROWS]
    for plane, least in PLANES.items():
        count = sum(number.startswith(plane) for number in numbers)
        assert count >= least, plane
        assert [one for one in numbers if one.startswith(plane)] == [
            f"{plane}{n}" for n in range(1, count + 1)
        ]
    assert {number[0] for number in numbers} == set(PLANES)
    # Every row of these tables was read: a row that is written otherwise is not passed over.
    section = PAGE.partition("## Attacks, and the tests that make them")[2]
    assert len(re.findall(r"^\| [A-Z]\d+", section, re.MULTILINE)) == len(numbers)


def test_none_of_them_is_skipped_as_a_rule() -> None:
    """A test that is marked to be skipped would be no test."""
    for row in ROWS:
        for file, name in TEST.findall(row[3]):
            text = (ROOT / file).read_text()
            before = text[: text.index(f"def {name}(")].rstrip().rpartition("\n\n\n")[2]
            assert "mark.skip(" not in before, f"{file}::{name}"
            assert "xfail" not in before, f"{file}::{name}"
