"""The table of fault by operation shows its holes, and each impossible cell has a reason."""

from pathlib import Path

from tests.evidence.pieces import write_piece
from tests.simulation.coverage import IMPOSSIBLE, holes, operations_of, recorded, table

FORMED = ("proposal", "forming")


def test_a_cell_that_nothing_filled_is_a_hole_unless_it_can_not_be_filled() -> None:
    coverage = {"kill": {"proposal": 3}, "rot": {"proposal": 1}}
    assert holes(coverage, FORMED) == [("kill", "forming")]
    assert holes({"rot": {}}, FORMED) == [("rot", "proposal")]


def test_every_reason_is_a_sentence_about_a_known_operation() -> None:
    assert all(len(why.split()) > 5 for why in IMPOSSIBLE.values())
    assert {operation for _, operation in IMPOSSIBLE} <= set(operations_of("cluster"))


def test_recorded_runs_add_up(tmp_path: Path) -> None:
    for number in (1, 2):
        figures = {
            "simulator": "quorum",
            "kind": "drawn",
            "first": 10 * number,
            "count": 5,
            "violations": 0,
            "coverage": {"kill": {"proposal": number}, "power": {"jump": 1}},
        }
        write_piece(tmp_path, "seeds", figures, 1.0, command="a test")
    found = recorded(tmp_path)
    assert found == {"cluster": {}, "quorum": {"kill": {"proposal": 3}, "power": {"jump": 2}}}
    lines = list(table(found["quorum"], ("proposal", "jump")))
    assert [line.split() for line in lines[1:]] == [["kill", "3", "."], ["power", ".", "2"]]
