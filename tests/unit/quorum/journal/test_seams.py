"""A frame must end where the journal was durable; otherwise the bytes are of another time."""

from quorum.journal import RaftJournal
from tests.unit.quorum.journal.rig import Rig, command, entries, fill

FIRST = "journal/00000000000000000001.wal"
SECOND = "journal/00000000000000000002.wal"
THIRD = "journal/00000000000000000003.wal"
SYNCED_NOTES = "journal/synced"


def wrote(rig: Rig, journal: RaftJournal, first: int, last: int) -> dict[str, bytes]:
    fill(journal, first, last)
    journal.sync()
    rig.settle()
    return rig.files()


def test_synced_notes_of_other_bytes_than_these_are_damage() -> None:
    """Journal and synced notes are put back, each to another moment (damage seed 596)."""
    rig = Rig()
    journal = rig.open()
    before = wrote(rig, journal, 1, 2)
    notes = wrote(rig, journal, 3, 3)[SYNCED_NOTES]
    other = rig.with_files(before)
    journal = other.open()
    journal.add(command(3) * 20, 3, 2)
    journal.sync()
    other.settle()
    again = other.with_files(other.files() | {SYNCED_NOTES: notes}).open()
    assert f"{FIRST} is damaged" in again.damage
    assert "no frame ends at position" in again.damage
    assert again.opened.torn is None


def torn_twice() -> Rig:
    """A segment superseded the tail of the first, and another one what was left of that segment."""
    rig = Rig()
    journal = rig.open()
    wrote(rig, journal, 1, 4)
    fill(journal, 5, 12)
    journal.sync()
    rig.kill()
    assert rig.open().segment_names == [FIRST, SECOND]
    rig.kill()
    rig.platter.cut(SECOND, rig.files()[SECOND].index(command(7)))
    rig.platter.put(SYNCED_NOTES, b"")
    journal = rig.open()
    assert journal.segment_names == [FIRST, THIRD]
    assert entries(journal)[-1][1] == 6
    rig.kill()
    return rig


def test_a_superseded_tail_is_not_taken_for_the_line_again() -> None:
    """The segment that superseded it has lost all but its beginning (damage seed 476)."""
    rig = torn_twice()
    rig.platter.cut(THIRD, 20)
    assert "no frame ends at position" in rig.open().damage


def test_a_segment_without_its_opening_says_by_its_frames_what_it_superseded() -> None:
    rig = torn_twice()
    third = rig.files()[THIRD]
    rig.platter.put(THIRD, b"X" + third[1 : third.index(command(6)) + len(command(6))])
    rig.platter.put(SYNCED_NOTES, b"")
    assert f"{THIRD} is damaged at byte 0: its first frame is bad" in rig.open().damage
