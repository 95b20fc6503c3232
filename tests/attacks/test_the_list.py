"""The command that makes the attacks says which rows don't hold."""

from collections import Counter

import pytest

from tests.attacks.__main__ import Outcomes, main, row_of
from tests.attacks.listed import ListedAttack

ATTACK = ListedAttack("C1", "an attack", (("tests/a.py", "test_b"), ("tests/a.py", "test_c")), "")
GOOD = {"passed": 3}


@pytest.mark.parametrize(
    ("second", "holds", "says"),
    [
        ({"passed": 1}, True, "4 passed, 0 failed, 0 skipped"),
        ({"passed": 1, "failed": 1}, False, "4 passed, 1 failed, 0 skipped"),
        ({"skipped": 1}, False, "3 passed, 0 failed, 1 skipped: tests/a.py::test_c"),
        ({}, False, "3 passed, 0 failed, 0 skipped: tests/a.py::test_c"),
    ],
    ids=["all pass", "one case fails", "one is skipped", "one never ran"],
)
def test_a_row_holds_if_all_its_tests_passed(
    second: dict[str, int], holds: bool, says: str
) -> None:
    outcomes = Outcomes()
    outcomes.of = {ATTACK.tests[0]: Counter(GOOD), ATTACK.tests[1]: Counter(second)}
    found, line = row_of(ATTACK, outcomes)
    assert found is holds
    assert line.endswith(says)


def test_an_unknown_row_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Z9"]) == 2
    assert "no attack Z9" in capsys.readouterr().err
