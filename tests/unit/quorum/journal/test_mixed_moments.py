"""Files from different times of one journal in one folder are never read as one journal."""

import random
from collections import Counter

import pytest

from quorum.journal import DamagedError, RaftJournal
from tests.unit.quorum.journal.rig import Rig, command, fill

FIRST = "journal/00000000000000000001.wal"
SECOND = "journal/00000000000000000002.wal"
SYNCED_NOTES = "journal/synced"


def test_a_frame_that_reaches_into_the_next_segment_is_damage() -> None:
    """The segment is of another time, in which the one before it ended sooner."""
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 2)
    journal.sync()
    rig.settle()
    before = rig.files()
    rig.segment_bytes = 1
    rig = rig.with_files(before)
    journal = rig.open()
    journal.add(command(3), 3, 1)
    journal.note_synced()
    second = rig.files()[SECOND]
    rig = Rig().with_files(before)
    journal = rig.open()
    journal.add(command(3) * 20, 3, 1)
    journal.note_synced()
    again = rig.with_files(rig.files() | {SECOND: second}).open()
    assert f"{FIRST} is damaged" in again.damage
    assert "a frame reaches into the next segment" in again.damage
    assert again.voted_for == "unknown"


def live(rig: Rig, dice: random.Random, moments: list[dict[str, bytes]]) -> RaftJournal:
    """Open, write a little, and end in one way or another."""
    journal = rig.open()
    if journal.damage and dice.random() < 0.5:
        journal.history.repaired(b"repaired")
    for _ in range(dice.randrange(1, 4)):
        term = max(1, journal.term + dice.choice((0, 1)))
        if term > journal.term:
            journal.set_term(term, f"{dice.randrange(1, 4)}@dir")
        if dice.random() < 0.2 and journal.last_index > 3:
            journal.delete_from(journal.last_index - 1)
        for index in range(journal.last_index + 1, journal.last_index + dice.randrange(2, 7)):
            journal.add(b"x" * dice.choice((1, 7, 30, 100)), index, term)
        if dice.random() < 0.7:
            journal.sync()
            rig.settle()
        else:
            journal.note_synced()
        moments.append(rig.files())
    dice.choice((rig.kill, rig.lose_power))()
    moments.append(rig.files())
    return journal


def mixed(dice: random.Random, moments: list[dict[str, bytes]]) -> dict[str, bytes]:
    """The newest files; some of them cut, lost, or as they were before."""
    files = dict(moments[-1])
    if dice.random() < 0.3:
        files.pop(SYNCED_NOTES, None)
    for _ in range(dice.choice((0, 1, 1, 2))):
        name = dice.choice(sorted(files))
        act = dice.choice(("cut", "lost", "old", "old"))
        if act == "cut":
            files[name] = files[name][: dice.randrange(len(files[name]) + 1)]
        elif act == "lost" and len(files) > 1:
            del files[name]
        else:
            old = dice.choice(moments)
            name = dice.choice(sorted(old))
            files[name] = old[name]
    return files


@pytest.mark.slow
def test_files_of_several_moments_are_opened_found_damaged_or_refused() -> None:
    met: Counter[str] = Counter()
    for seed in range(1000):
        dice, moments = random.Random(seed), list[dict[str, bytes]]()
        rig = Rig(seed, segment_bytes=dice.choice((200, 400, 1000, 1 << 20)))
        try:
            for _ in range(dice.randrange(2, 8)):
                journal = live(rig, dice, moments)
                found = journal.opened.damage
                met[found.what.partition(":")[0] if found is not None else "nothing"] += 1
                rig = rig.with_files(mixed(dice, moments))
        except DamagedError:
            met["refused"] += 1
    assert met["nothing"] > 1000
    assert met["refused"] > 50
    assert any("no frame ends at position" in what for what in met)
    assert met["a frame reaches into the next segment"] > 0
