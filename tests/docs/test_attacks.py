"""SECURITY.md's list of attacks is a test suite: each row names tests, and they exist.

`make attacks` runs them, and says of each row whether it holds.
"""

import ast
import re
from functools import cache

import pytest

from tests.attacks.listed import PAGE, ListedAttack, attacks
from tests.docs.source import ROOT

ROWS = attacks()
PLANES = {"C": 12, "B": 8, "A": 16, "L": 10, "H": 8, "S": 5}
"""How many attacks each plane has at least: none is taken out in silence."""


@cache
def names_in(file: str) -> set[str]:
    """The names of a file's tests. pytest calls those in a class by the class's name, too."""
    tree = ast.parse((ROOT / file).read_text())
    return {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("attack", ROWS, ids=[one.number for one in ROWS])
def test_an_attack_names_tests_that_exist(attack: ListedAttack) -> None:
    assert attack.tests
    assert attack.rest == ""
    missing = [f"{file}::{name}" for file, name in attack.tests if name not in names_in(file)]
    assert missing == []


def test_no_attack_is_lost() -> None:
    numbers = [one.number for one in ROWS]
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
        for file, name in row.tests:
            text = (ROOT / file).read_text()
            before = text[: text.index(f"def {name}(")].rstrip().rpartition("\n\n\n")[2]
            assert "mark.skip(" not in before, f"{file}::{name}"
            assert "xfail" not in before, f"{file}::{name}"
