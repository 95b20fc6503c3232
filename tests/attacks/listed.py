"""The list of attacks in SECURITY.md: its rows, and the tests that each names."""

import re
from typing import Final, NamedTuple

from tests.docs.source import ROOT

PAGE: Final = (ROOT / "SECURITY.md").read_text()
_ROW: Final = re.compile(r"^\| ([A-Z]\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_TEST: Final = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


class ListedAttack(NamedTuple):
    """One row."""

    number: str
    """A letter for the plane, and a number: `C4`."""
    attack: str
    tests: tuple[tuple[str, str], ...]
    """File and function of each test."""
    rest: str
    """What else stands in the column of the tests: nothing, if it is written rightly."""


def attacks() -> list[ListedAttack]:
    """Return all rows in their order."""
    return [
        ListedAttack(number, attack, tuple(_TEST.findall(tests)), _TEST.sub("", tests).strip(" ,"))
        for number, attack, _, tests in _ROW.findall(PAGE)
    ]
