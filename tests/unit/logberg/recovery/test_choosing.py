"""Which folder is the most complete, and what is said of the others and of what may be lost."""

from pathlib import Path

import pytest

from logberg.recovery.choosing import NoChoiceError, choose
from logberg.recovery.survivors import NoSurvivorError, Survivor, read_survivor
from quorum.api import ClusterGeneration
from quorum.journal import Known
from tests.unit.audit.nodes import InlineDisk
from tests.unit.logberg.recovery.folders import (
    DIRECTORIES,
    SECOND,
    Made,
    damage_journal,
    history,
    survivor,
)

LOG = history((1, 3), (2, 4), (5, 3))
"""13 batches: epoch 1 from offset 0, epoch 2 from 10, epoch 5 from 19, the end at 26."""
LONGER = history((1, 3), (2, 9))
"""The same up to the end of LOG's epoch 2; it ends behind LOG."""
OTHER = history((1, 3), (2, 9), salt="other")
ENDS = [batch.header.end_offset for batch in LOG]

TABLE = [
    # what each folder's log is (batches of LOG), and which one is chosen
    ("the longer log", (12, 10), 0),
    ("the longer log, whoever has it", (7, 12), 1),
    ("the higher epoch", (9, 10), 1),
    ("of three the longest", (7, 8, 5), 1),
    ("of equals the lower node id", (12, 12, 12), 0),
]


def folders(tmp_path: Path, *made: Made) -> list[Survivor]:
    return [survivor(tmp_path, f"controller-{each.node_id}", each) for each in made]


@pytest.mark.parametrize(("what", "lengths", "wanted"), TABLE, ids=[row[0] for row in TABLE])
@pytest.mark.parametrize("applied", [0, 2, None])
def test_the_most_complete_is_chosen(
    tmp_path: Path, what: str, lengths: tuple[int, ...], wanted: int, applied: int | None
) -> None:
    """Whether it lies in the ledger already or only in the journal."""
    found = folders(
        tmp_path,
        *(
            Made(n, LOG[:length], length if applied is None else applied)
            for n, length in enumerate(lengths, start=1)
        ),
    )
    choice = choose(found)
    assert choice.chosen is found[wanted]
    assert choice.end == ENDS[lengths[wanted] - 1]
    assert [each.survivor.name for each in choice.rejected] == [
        each.name for each in sorted(found, key=lambda s: s.name) if each is not choice.chosen
    ] or len(lengths) == 3


def test_a_higher_epoch_wins_over_a_longer_log(tmp_path: Path) -> None:
    """What epoch 5 did not take over from epoch 2 was never committed."""
    shorter, longer = folders(tmp_path, Made(1, LOG, 8), Made(2, OTHER, 0))
    assert longer.end.log_end > 0
    assert choose([shorter, longer]).chosen is shorter
    assert "epoch 2" in choose([shorter, longer]).rejected[0].why


def test_certain_and_probable(tmp_path: Path) -> None:
    (one,) = folders(tmp_path, Made(1, LOG, in_ledger=5, committed=7))
    choice = choose([one])
    assert (choice.certain_end, choice.end) == (ENDS[6], ENDS[-1])
    assert choice.absent == (2, 3)
    assert not choice.nothing_lost
    assert "these voters are not here: 2, 3" in choice.losses[0]
    assert f"behind offset {ENDS[-1] - 1}" in choice.losses[0]


def test_what_another_folder_knows_to_be_committed_is_certain(tmp_path: Path) -> None:
    found = folders(tmp_path, Made(1, LOG, 3, observes=True), Made(2, LOG[:9], 9, observes=True))
    choice = choose(found)
    assert choice.chosen.node_id == 1
    assert choice.certain_end == ENDS[8]
    assert "it observed" in choice.losses[0]


def test_a_sound_majority_loses_nothing(tmp_path: Path) -> None:
    choice = choose(folders(tmp_path, Made(1, LOG, 12), Made(3, LOG[:8], 8)))
    assert choice.nothing_lost
    assert choice.losses == ()


def test_a_majority_with_a_damaged_journal_is_none(tmp_path: Path) -> None:
    survivor(tmp_path, "controller-1", Made(1, LOG, 12))
    damage_journal(tmp_path / "controller-1")
    first = read_survivor("controller-1", InlineDisk(tmp_path / "controller-1"))
    assert "is damaged at byte" in first.journal.damage
    second = survivor(tmp_path, "controller-2", Made(2, LOG[:8], 8))
    choice = choose([first, second])
    assert not choice.nothing_lost
    assert any("is damaged, and may have held more" in said for said in choice.losses)


def test_the_ledger_of_a_damaged_journal_counts(tmp_path: Path) -> None:
    """A journal that was cut at its damage may end long before its log."""
    survivor(tmp_path, "controller-1", Made(1, LOG, 13))
    damage_journal(tmp_path / "controller-1")
    first = read_survivor("controller-1", InlineDisk(tmp_path / "controller-1"))
    assert first.journal.last_index < 12
    second = survivor(tmp_path, "controller-2", Made(2, LOG[:11], 0))
    assert choose([first, second]).chosen is first
    assert choose([first, second]).end == ENDS[-1]


def test_of_equal_logs_the_sound_one(tmp_path: Path) -> None:
    survivor(tmp_path, "controller-1", Made(1, LOG, 13))
    damage_journal(tmp_path / "controller-1")
    first = read_survivor("controller-1", InlineDisk(tmp_path / "controller-1"))
    second = survivor(tmp_path, "controller-2", Made(2, LOG, 13))
    assert first.end == second.end
    assert choose([first, second]).chosen is second


def test_a_damaged_ledger_ends_before_the_damage(tmp_path: Path) -> None:
    survivor(tmp_path, "controller-1", Made(1, LOG, 12, in_journal=0))
    path = sorted((tmp_path / "controller-1" / "log").glob("*.log"))[1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    first = read_survivor("controller-1", InlineDisk(tmp_path / "controller-1"))
    assert 0 < first.end.log_end < ENDS[-1]
    second = survivor(tmp_path, "controller-2", Made(2, LOG, 0))
    assert choose([first, second]).chosen is second


def test_batches_that_the_fence_keeps_out_do_not_count(tmp_path: Path) -> None:
    """A deposed leader's batches, which stand behind those of the next epoch."""
    mixed = [*LOG[:9], *OTHER[5:7]]
    (one,) = folders(tmp_path, Made(1, mixed, 0))
    assert one.end.log_end == ENDS[8]


def test_an_older_copy_is_found(tmp_path: Path) -> None:
    """Another folder remembers it further than it is."""
    knows = {DIRECTORIES[2]: Known(b"\0\0\0\0later!!!", 10**6)}
    found = folders(tmp_path, Made(1, LOG, 12, known=knows), Made(2, LOG[:8], 8))
    choice = choose(found)
    assert not choice.nothing_lost
    assert any("controller-2 held more once" in said for said in choice.losses)


def test_folders_of_an_earlier_generation_are_left_out(tmp_path: Path) -> None:
    old, new = folders(tmp_path, Made(1, LOG, 12), Made(2, LOG[:6], 6, generation=SECOND))
    choice = choose([old, new])
    assert choice.chosen is new
    assert choice.rejected[0].why == "it is of generation 1, an earlier one"


REFUSED = [
    (
        "two clusters",
        (Made(1, LOG, 3), Made(2, history((1, 1), cluster="another"), 1, cluster="another")),
        "belong to different clusters",
    ),
    (
        "two recoveries",
        (
            Made(1, LOG, 3, generation=SECOND),
            Made(2, LOG, 3, generation=ClusterGeneration(2, b"h" * 16)),
        ),
        "recovered twice",
    ),
    (
        "two histories that both say to be committed",
        (Made(1, LOG, 12), Made(2, OTHER, 4)),
        "hold different histories before offset",
    ),
    (
        "a committed history that is longer than the chosen log",
        (Made(1, LOG, 8), Made(2, LONGER, len(LONGER))),
        "controller-2 knows that its history is committed",
    ),
    (
        "a committed end that only the journal has",
        (Made(1, LOG, 8), Made(2, LONGER, 8, committed=10)),
        "hold different histories before offset 21",
    ),
]


@pytest.mark.parametrize(("what", "made", "sentence"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_can_not_be_recovered_together(
    tmp_path: Path, what: str, made: tuple[Made, ...], sentence: str
) -> None:
    with pytest.raises(NoChoiceError, match=sentence):
        choose(folders(tmp_path, *made))


def test_a_folder_without_a_journal_is_none(tmp_path: Path) -> None:
    with pytest.raises(NoSurvivorError, match="holds no journal"):
        read_survivor("empty", InlineDisk(tmp_path / "empty"))


def test_reading_changes_nothing(tmp_path: Path) -> None:
    survivor(tmp_path, "controller-1", Made(1, LOG, 5))
    damage_journal(tmp_path / "controller-1")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    read_survivor("controller-1", InlineDisk(tmp_path / "controller-1"))
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == files


FOUR, FIVE = (1, 2, 3, 4), (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("changes", "committed", "here", "sound", "absent"),
    [
        ({}, 13, (1, 2), True, (3,)),
        ({5: FOUR}, 13, (1, 2), False, (3, 4)),
        ({5: FOUR}, 13, (1, 2, 4), True, (3,)),
        ({5: FOUR, 9: FIVE}, 13, (1, 2, 4), True, (3, 5)),
        ({5: FOUR, 9: FIVE, 11: FOUR}, 13, (1, 5, 4), False, (2, 3)),
        # Behind the commit index, either set may be the one that counts.
        ({12: (1, 2)}, 11, (1, 2), True, ()),
        ({12: FOUR}, 11, (1, 2), False, (3, 4)),
        ({12: FOUR}, 11, (1, 4), False, (2, 3)),
        ({12: FOUR}, 11, (1, 2, 4), True, (3,)),
    ],
)
def test_a_majority_is_one_of_all_voters_that_may_be_in_force(
    tmp_path: Path,
    changes: dict[int, tuple[int, ...]],
    committed: int,
    here: tuple[int, ...],
    sound: bool,
    absent: tuple[int, ...],
) -> None:
    found = folders(tmp_path, *(Made(n, LOG, 4, committed, voters=changes) for n in here))
    choice = choose(found)
    assert (choice.nothing_lost, choice.absent) == (sound, absent)
    assert choice.end == ENDS[-1]
