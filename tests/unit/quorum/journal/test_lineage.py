"""Lineage: an older copy of a folder does not hold what was written after the copy."""

import msgspec
import pytest

from quorum.journal import Known, RaftJournal
from quorum.journal.frames import HEADER_BYTES
from quorum.journal.lineage import INCARNATION_BYTES, KEPT, OPEN, Lineage
from quorum.journal.segments import BUFFER_BYTES_MAX
from quorum.journal.state import ENTRY_HEAD
from tests.unit.quorum.journal.rig import Rig, fill, manifest_at

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
    assert lineage.incarnation == B


def test_of_lives_forgotten_by_name_the_position_tells() -> None:
    lineage = Lineage()
    for number in range(KEPT + 2):
        lineage.begin(number.to_bytes(INCARNATION_BYTES, "big"), number * 10)
    lineage = Lineage(lineage.incarnations)
    assert lineage.incarnations[0] == (b"", 20)
    assert lineage.incarnations[1] == ((2).to_bytes(INCARNATION_BYTES, "big"), 30)
    assert len(lineage.incarnations) == 1 + KEPT
    assert lineage.holds(A, 20)
    assert not lineage.holds(A, 21)


def test_a_loss_stays_accounted_for_however_many_lives_there_were() -> None:
    lineage = Lineage()
    for number in range(2 * KEPT):
        lineage.begin(number.to_bytes(INCARNATION_BYTES, "big"), number * 10)
    lineage.note_lost(A, 10**6)
    lineage.begin((2 * KEPT).to_bytes(INCARNATION_BYTES, "big"), 2 * KEPT * 10)
    assert lineage.holds(A, 10**6)
    assert not lineage.holds(B, 10**6)


def test_lives_and_what_is_known_of_peers_outlive_kills_segments_and_compaction() -> None:
    rig = Rig(segment_bytes=400)
    journal = rig.open()
    journal.history.begin_incarnation(DRAWN[0])
    journal.history.remember(b"d" * 16, Known(B, 7))
    fill(journal, 1, 60)
    journal.sync()
    rig.settle()
    told = journal.durable_position
    rig.kill()
    journal = rig.open()
    assert len(journal.segment_names) > 1
    assert journal.history.lineage.incarnation == A
    assert journal.history.known == {b"d" * 16: Known(B, 7)}
    journal.history.begin_incarnation(DRAWN[2])
    assert journal.history.lineage.holds(A, told)
    rig.stop(journal)
    assert rig.open().history.lineage.incarnation == C


def test_a_copy_of_earlier_is_told_from_the_folder_that_it_was() -> None:
    rig = Rig()
    journal = rig.open()
    journal.history.begin_incarnation(DRAWN[0])
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
        other.history.begin_incarnation(DRAWN[1])
        assert other.damage == ""
        assert other.history.lineage.holds(A, told) is held
        # However much it writes from now on.
        fill(other, other.last_index + 1, other.last_index + 50)
        assert other.history.lineage.holds(A, told) is held


def test_a_loss_is_damage_until_it_is_repaired_and_stays_accounted_for() -> None:
    rig = Rig()
    journal = rig.open()
    journal.history.begin_incarnation(DRAWN[0])
    fill(journal, 1, 5)
    journal.history.lost(B, 900, "a peer remembers more")
    assert journal.position_of_vote == journal.written_position
    journal.sync()
    rig.settle()
    rig.lose_power()
    journal = rig.open()
    assert journal.damage == "a peer remembers more"
    assert len(journal) == 5
    journal.history.repaired(DRAWN[2])
    rig.stop(journal)
    journal = rig.open()
    assert journal.damage == ""
    assert journal.history.lineage.holds(B, 900)
    # Nor is any other life that went with it, whoever recalls it later.
    assert journal.history.lineage.incarnation == b"\0\0\0\1" + DRAWN[2]
    assert journal.history.lineage.holds(b"\0\0\0\0unheard!", 10**9)
    assert not journal.history.lineage.holds(b"\0\0\0\1unheard!", 0)


def test_a_repair_begins_a_generation_above_all_that_were_heard_of() -> None:
    """Else a folder of an earlier generation, put back and repaired, would pass for the later."""
    lineage = Lineage()
    lineage.begin(lineage.named(DRAWN[0]), 0)
    lineage.note_lost(b"\0\0\0\7" + DRAWN[1], 500)
    lineage.begin(lineage.named_after_repair(DRAWN[2]), 100)
    assert lineage.incarnation == b"\0\0\0\10" + DRAWN[2]
    assert lineage.named(DRAWN[0])[:4] == b"\0\0\0\10"
    assert not Lineage([(b"\0\0\0\7" + DRAWN[1], OPEN)]).holds(lineage.incarnation, 101)


def drawn(number: int) -> bytes:
    return number.to_bytes(8, "big")


def test_a_repair_is_above_what_was_heard_however_often_the_node_was_restarted_damaged() -> None:
    lineage = Lineage()
    lineage.begin(lineage.named(drawn(1)), 0)
    heard = b"\0\0\0\7" + DRAWN[0]
    lineage.note_lost(heard, 5000)
    for number in range(2, 3 * KEPT):
        lineage = Lineage(lineage.incarnations)
        lineage.begin(lineage.named(drawn(number)), number * 10)
    lineage.begin(lineage.named_after_repair(DRAWN[2]), 2000)
    assert not Lineage([(heard, OPEN)]).holds(lineage.incarnation, 3000)


@pytest.mark.parametrize(("before", "after"), [(1, 2 * KEPT), (2 * KEPT, 1)])
def test_what_was_lost_before_a_repair_does_not_speak_for_lives_that_come_after_it(
    before: int, after: int
) -> None:
    """The folder was far ahead of the copy that was put back; then another copy is made."""
    lineage = Lineage()
    lineage.begin(lineage.named(DRAWN[2]), 0)
    lineage.note_lost(b"\0\0\0\0" + b"far away", 10**9)
    for number in range(before):
        lineage.begin(lineage.named(drawn(number)), number)
    lineage.begin(lineage.named_after_repair(b"repaired"), 1000)
    for number in range(after):
        lineage = Lineage(lineage.incarnations)
        lineage.begin(lineage.named(drawn(number)), 1000 + number)
    copy = Lineage(lineage.incarnations)
    lineage.begin(lineage.named(DRAWN[0]), 200_000)
    copy.begin(copy.named(DRAWN[1]), 100_000)
    assert not copy.holds(lineage.incarnation, 300_000)


def test_a_life_of_a_later_generation_is_not_held_because_its_position_is_low() -> None:
    lineage = Lineage()
    for number in range(KEPT + 5):
        lineage.begin(lineage.named(drawn(number)), number * 1000)
    assert lineage.holds(b"\0\0\0\0" + DRAWN[0], 100)
    assert not lineage.holds(b"\0\0\0\3" + DRAWN[0], 100)


@pytest.mark.parametrize("what", ["an entry", "a vote"])
@pytest.mark.parametrize("noted", [False, True])
def test_a_copy_that_lacks_one_frame_is_told_from_the_folder(what: str, noted: bool) -> None:
    """What the opening itself writes may be longer than the frame that is missing."""
    rig = Rig()
    journal = rig.open()
    journal.history.begin_incarnation(DRAWN[0])
    journal.set_formation(b"f" * 100)
    fill(journal, 1, 5)
    journal.sync()
    rig.settle()
    if noted:
        # As every second: the copy ends beyond what it knows to be durable.
        journal.note_synced()
    copy, end, incarnation = (
        rig.files(),
        journal.written_position,
        journal.history.lineage.incarnation,
    )
    if what == "an entry":
        fill(journal, 6, 6)
    else:
        journal.set_term(7, "2@dir")
    journal.sync()
    rig.settle()
    other = rig.with_files(copy).open()
    other.history.begin_incarnation(DRAWN[1])
    assert other.history.lineage.holds(incarnation, end)
    assert not other.history.lineage.holds(incarnation, end + 1)
    assert not other.history.lineage.holds(incarnation, journal.durable_position)


def test_a_copy_from_the_midst_of_a_jump_is_told_from_the_folder() -> None:
    """Between a catch-up's manifest and the journal's reset, which the opening does."""
    longer = Rig()
    source = longer.open()
    fill(source, 1, 20)
    source.sync()
    longer.settle()
    rig = Rig()
    journal = rig.open()
    journal.history.begin_incarnation(DRAWN[0])
    fill(journal, 1, 5)
    journal.sync()
    rig.settle()
    manifest = msgspec.structs.replace(
        manifest_at(source, 19),
        directory_id=journal.directory_id,
        journal_position=journal.durable_position,
    )
    copy, incarnation = rig.files(), journal.history.lineage.incarnation
    journal.set_term(7, "2@dir")
    journal.sync()
    rig.settle()
    other = rig.with_files(copy).open(manifest)
    assert other.opened.reset
    assert not other.damage
    other.history.begin_incarnation(DRAWN[1])
    assert not other.history.lineage.holds(incarnation, journal.durable_position)


def test_a_life_read_back_ends_where_the_next_one_began() -> None:
    rig = Rig()
    journal = rig.open()
    journal.history.begin_incarnation(DRAWN[0])
    fill(journal, 1, 3)
    journal.history.begin_incarnation(DRAWN[1])
    journal.sync()
    rig.settle()
    incarnations = journal.history.lineage.incarnations
    rig.kill()
    assert rig.open().history.lineage.incarnations[0] == incarnations[0]


@pytest.mark.parametrize("is_repair", [False, True])
def test_lives_read_back_are_those_that_were_written(is_repair: bool) -> None:
    """Also when their frame fills a segment: the next begins with the state behind it."""
    for spare in (0, 10, 1000):
        rig = Rig(segment_bytes=1000)
        journal = rig.open()
        journal.history.begin_incarnation(DRAWN[0])
        fill(journal, 1, 3)
        if is_repair:
            journal.history.lost(b"\0\0\0\0lostlost", 10**6, "a peer remembers more")
        journal.sync()
        rig.settle()
        head = HEADER_BYTES + ENTRY_HEAD.size
        room = BUFFER_BYTES_MAX - journal._writer._buffered - head - spare
        journal.add(b"x" * room, 4, 1)
        segments = len(journal.segment_names)
        (journal.history.repaired if is_repair else journal.history.begin_incarnation)(DRAWN[1])
        assert (len(journal.segment_names) > segments) is (spare < 1000)
        incarnations = journal.history.lineage.incarnations
        journal.sync()
        rig.settle()
        told = journal.durable_position
        rig.kill()
        again = rig.open()
        assert [incarnation for incarnation, _ in again.history.lineage.incarnations] == [
            incarnation for incarnation, _ in incarnations
        ]
        assert again.history.lineage.incarnations[:-1] == incarnations[:-1]
        again.history.begin_incarnation(DRAWN[2])
        assert again.history.lineage.holds(incarnations[-1][0], told)


def damaged(rig: Rig) -> RaftJournal:
    journal = rig.open()
    journal.history.begin_incarnation(DRAWN[0])
    fill(journal, 1, 3)
    journal.history.lost(B, 10**6, "a peer remembers more")
    journal.sync()
    rig.settle()
    return journal


def test_a_repair_that_was_not_durable_is_made_again() -> None:
    rig = Rig()
    journal = damaged(rig)
    journal.history.repaired(DRAWN[1])
    assert not journal.history.repair_is_noted
    journal._writer.flush()
    rig.kill()
    journal = rig.open()
    assert journal.damage == "a peer remembers more"
    journal.history.repaired(DRAWN[2])
    rig.stop(journal)
    assert rig.open().damage == ""


@pytest.mark.parametrize("seed", range(12))
def test_a_repair_that_is_noted_outlives_a_loss_of_power(seed: int) -> None:
    rig = Rig(seed=seed)
    journal = damaged(rig)
    journal.history.repaired(DRAWN[1])
    journal.sync()
    rig.settle()
    assert not journal.history.repair_is_noted
    journal.sync()
    assert journal.history.repair_is_noted
    assert journal.position_of_vote > journal.durable_position
    rig.settle()
    rig.lose_power()
    assert rig.open().damage == ""


def test_behind_the_last_rank_there_is_none() -> None:
    """Any peer may name any: a repair must not fail for that."""
    lineage = Lineage([(A, OPEN)])
    lineage.note_lost(b"\xff" * INCARNATION_BYTES, 5)
    assert lineage.named_after_repair(DRAWN[0]) == b"\xff\xff\xff\xff" + DRAWN[0]
