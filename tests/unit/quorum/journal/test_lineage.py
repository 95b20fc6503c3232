"""The lives of a folder: an older copy of it can't say that it holds what was written later."""

from quorum.journal import Known
from quorum.journal.lineage import KEPT, LIFE_BYTES, OPEN, Lineage
from tests.unit.quorum.journal.rig import Rig, fill

DRAWN = [bytes([letter]) * 8 for letter in b"abc"]
A, B, C = (b"\0\0\0\0" + drawn for drawn in DRAWN)


def test_a_life_is_held_up_to_where_the_next_began() -> None:
    lineage = Lineage()
    lineage.begin(A, 0)
    assert lineage.holds(A, 10**12)
    lineage.begin(B, 100)
    assert lineage.holds(A, 100)
    assert not lineage.holds(A, 101)
    assert lineage.holds(B, 5000)
    assert not lineage.holds(C, 0)


def test_what_is_known_to_be_lost_is_taken_account_of_once() -> None:
    lineage = Lineage([(A, 100), (B, OPEN)])
    lineage.note_lost(C, 300)
    assert lineage.holds(C, 300)
    assert not lineage.holds(C, 301)
    lineage.note_lost(A, 150)
    assert lineage.holds(A, 150)
    assert lineage.life == B


def test_of_lives_forgotten_by_name_the_position_tells() -> None:
    lineage = Lineage()
    for number in range(KEPT + 2):
        lineage.begin(number.to_bytes(LIFE_BYTES, "big"), number * 10)
    lineage = Lineage(lineage.lives)
    assert lineage.lives[0] == (b"", 20)
    assert lineage.lives[1] == ((2).to_bytes(LIFE_BYTES, "big"), 30)
    assert len(lineage.lives) == 1 + KEPT
    assert lineage.holds(A, 20)
    assert not lineage.holds(A, 21)


def test_a_loss_stays_accounted_for_however_many_lives_there_were() -> None:
    lineage = Lineage()
    for number in range(2 * KEPT):
        lineage.begin(number.to_bytes(LIFE_BYTES, "big"), number * 10)
    lineage.note_lost(A, 10**6)
    assert lineage.holds(A, 10**6)
    assert not lineage.holds(B, 10**6)


def test_lives_and_what_is_known_of_peers_outlive_kills_segments_and_compaction() -> None:
    rig = Rig(segment_bytes=400)
    journal = rig.open()
    journal.begin_life(DRAWN[0])
    journal.remember(b"d" * 16, Known(B, 7))
    fill(journal, 1, 60)
    journal.sync()
    rig.settle()
    told = journal.durable_position
    rig.kill()
    journal = rig.open()
    assert len(journal.segment_names) > 1
    assert journal.lineage.life == A
    assert journal.known == {b"d" * 16: Known(B, 7)}
    journal.begin_life(DRAWN[2])
    assert journal.lineage.holds(A, told)
    rig.stop(journal)
    assert rig.open().lineage.life == C


def test_a_copy_of_earlier_is_told_from_the_folder_that_it_was() -> None:
    rig = Rig()
    journal = rig.open()
    journal.begin_life(DRAWN[0])
    fill(journal, 1, 5)
    journal.sync()
    rig.settle()
    copy = rig.files()
    fill(journal, 6, 9)
    journal.sync()
    rig.settle()
    told = journal.durable_position
    for files, held in ((rig.files(), True), (copy, False)):
        other = rig.with_files(files).open()
        other.begin_life(DRAWN[1])
        assert other.damage == ""
        assert other.lineage.holds(A, told) is held
        # However much it writes from now on.
        fill(other, other.last_index + 1, other.last_index + 50)
        assert other.lineage.holds(A, told) is held


def test_a_loss_is_damage_until_it_is_repaired_and_stays_accounted_for() -> None:
    rig = Rig()
    journal = rig.open()
    journal.begin_life(DRAWN[0])
    fill(journal, 1, 5)
    journal.lost(B, 900, "a peer remembers more")
    assert journal.position_of_vote == journal.written_position
    journal.sync()
    rig.settle()
    rig.lose_power()
    journal = rig.open()
    assert journal.damage == "a peer remembers more"
    assert len(journal) == 5
    journal.repaired(DRAWN[2])
    rig.stop(journal)
    journal = rig.open()
    assert journal.damage == ""
    assert journal.lineage.holds(B, 900)
    # Nor is any other life that went with it, whoever recalls it later.
    assert journal.lineage.life == b"\0\0\0\1" + DRAWN[2]
    assert journal.lineage.holds(b"\0\0\0\0unheard!", 10**9)
    assert not journal.lineage.holds(b"\0\0\0\1unheard!", 0)


def test_a_repair_begins_a_generation_above_all_that_were_heard_of() -> None:
    """Else a folder of an earlier generation, put back and repaired, would pass for the later."""
    lineage = Lineage()
    lineage.begin(lineage.named(DRAWN[0]), 0)
    lineage.note_lost(b"\0\0\0\7" + DRAWN[1], 500)
    lineage.begin(lineage.named_after_repair(DRAWN[2]), 100)
    assert lineage.life == b"\0\0\0\10" + DRAWN[2]
    assert lineage.named(DRAWN[0])[:4] == b"\0\0\0\10"
    assert not Lineage([(A, OPEN)]).holds(lineage.life, 101)
