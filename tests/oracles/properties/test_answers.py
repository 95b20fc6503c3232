"""We read files of properties as Java does: a table of its answers."""

import pytest

from tests.oracles.properties import TABLE
from tests.oracles.properties.cases import FIXED, answer, table

ROWS = list(table(TABLE.read_text().split("\n")[:-1]))


def test_the_table_has_the_rules_and_both_outcomes() -> None:
    assert [content for content, _ in ROWS[: len(FIXED)]] == list(FIXED)
    assert sum(found == "refused" for _, found in ROWS) > 20
    assert len(ROWS) >= 600


@pytest.mark.parametrize("part", range(0, len(ROWS), 100))
def test_every_answer_is_javas(part: int) -> None:
    wrong = [
        (content, found, answer(content))
        for content, found in ROWS[part : part + 100]
        if answer(content) != found
    ]
    assert wrong == []
