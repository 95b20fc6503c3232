"""Every attack is found by the verifier and the witness, or the table says that it can't be."""

from pathlib import Path

import pytest

from tests.rewrites.cases import ATTACKS, KEPT
from tests.rewrites.table import PAGE, Found, found, made

REMEDY = "run: python -m tests.rewrites.table"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    folder: Path = tmp_path_factory.mktemp("rewrites")
    return [found(attack, folder / str(n)) for n, attack in enumerate(ATTACKS)]


def test_the_page_has_what_was_found(rows: list[Found]) -> None:
    assert made(rows) == PAGE.read_text(), REMEDY


def test_with_a_kept_head_verifier_and_witness_find_each_attack(rows: list[Found]) -> None:
    for row in rows:
        if row.attack.kept and row.attack.at < KEPT:
            assert row.verifier.found, row
            assert row.witness.found, row
            if row.attack.rewritten:
                assert "first wrong offset" in row.verifier.text, row


def test_without_one_nobody_can(rows: list[Found]) -> None:
    blind = [row for row in rows if not row.attack.kept or row.attack.at >= KEPT]
    assert len(blind) == 2
    for row in blind:
        assert not any(said.found for said in row[1:] if said is not row.agent), row


def test_no_agent_adopts_a_forged_log_that_its_head_covers(rows: list[Found]) -> None:
    """Only a majority of the keys begins another generation, and then the agent says so."""
    for row in rows:
        if not row.attack.kept or row.attack.at >= KEPT:
            continue
        if row.attack.claims and len(row.attack.owned) > 1:
            assert "adopts the forged log, says so" in row.agent.text, row
        else:
            assert "adopts" not in row.agent.text, row
