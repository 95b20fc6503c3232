"""Opening a journal: torn tails are cut, damage is found, and the two are never confused."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from quorum.journal import DamagedError, RaftJournal, identity
from tests.unit.quorum.journal.rig import Rig, command, entries, fill

FIRST = "journal/00000000000000000001.wal"
SECOND = "journal/00000000000000000002.wal"
SYNCED_NOTES = "journal/synced"


def content(journal: RaftJournal) -> tuple[Any, ...]:
    vote = (journal.term, journal.voted_for)
    return entries(journal), vote, journal.formation


def small(*, stopped: bool = False, segment_bytes: int = 1 << 20) -> tuple[Rig, tuple[Any, ...]]:
    """Three group syncs, each with a vote and entries."""
    rig = Rig(segment_bytes=segment_bytes)
    journal = rig.open()
    journal.set_formation(b"formation")
    for term in (1, 2, 3):
        journal.set_term(term, f"{term}@dir")
        fill(journal, 3 * term - 2, 3 * term, term)
        if term == 2:
            journal.delete_from(4)
            fill(journal, 5, 6, term)
        journal.sync()
        rig.settle()
    written = content(journal)
    if stopped:
        rig.stop(journal)
    return rig, written


def opened(rig: Rig, files: dict[str, bytes]) -> RaftJournal | None:
    """Open these files; None when that is refused as damaged."""
    try:
        return rig.with_files(files).open()
    except DamagedError:
        return None


def flips(files: dict[str, bytes], name: str, step: int = 1) -> Iterator[dict[str, bytes]]:
    for place in range(0, len(files[name]) * 8, step):
        data = bytearray(files[name])
        data[place // 8] ^= 1 << place % 8
        yield files | {name: bytes(data)}


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("segment_bytes", [300, 1 << 20])
def test_every_flipped_bit_is_found_or_changes_nothing(stopped: bool, segment_bytes: int) -> None:
    rig, written = small(stopped=stopped, segment_bytes=segment_bytes)
    files = rig.files()
    assert segment_bytes > 300 or len(files) > 3
    # Every bit once; in the other three cases one bit in each byte, a different one each time.
    step = 1 if segment_bytes > 300 and not stopped else 9
    harmless = total = 0
    for name in files:
        for flipped in flips(files, name, step):
            total += 1
            journal = opened(rig, flipped)
            if journal is not None and not journal.damage:
                assert content(journal) == written, name
                harmless += name != SYNCED_NOTES
    # What a stop wrote last (a note that it was synced) can be lost without loss.
    assert harmless <= (36 * 8 if stopped else 0)
    assert total > (5000 if step == 1 else 700)


@pytest.mark.slow
def test_without_the_synced_notes_a_flip_is_found_before_the_last_synced_position_in_a_frame() -> (
    None
):
    rig, written = small()
    files = rig.files()
    del files[SYNCED_NOTES]
    lost: set[int] = set()
    for place, flipped in enumerate(flips(files, FIRST)):
        journal = opened(rig, flipped)
        if journal is not None and not journal.damage:
            lost.add(place // 8)
            kept = entries(journal)
            assert kept == written[0][: len(kept)]
            assert len(kept) >= 6
    # Exactly the last group, behind which nothing was written: the window that is documented.
    assert len(lost) == len(files[FIRST]) - min(lost)


def test_a_note_closes_that_window() -> None:
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 3)
    journal.sync()
    rig.settle()
    size = len(rig.files()[FIRST])
    journal.note_synced()
    files = rig.files()
    del files[SYNCED_NOTES]
    assert len(files[FIRST]) > size
    journal.note_synced()
    assert len(rig.files()[FIRST]) == len(files[FIRST])
    for flipped in flips(files | {FIRST: files[FIRST]}, FIRST):
        again = opened(rig, flipped)
        if again is not None and not again.damage:
            assert len(again) == 3


def test_what_was_durable_and_is_cut_off_is_damage_at_every_length() -> None:
    rig, _ = small()
    files = rig.files()
    for length in range(len(files[FIRST])):
        journal = opened(rig, files | {FIRST: files[FIRST][:length]})
        assert journal is None or journal.damage, length


def test_a_torn_tail_is_cut_at_every_byte() -> None:
    rig, written = small()
    durable = len(rig.files()[FIRST])
    rig.kill()
    journal = rig.open()
    fill(journal, 10, 14, 3)
    journal.set_term(4, "4@dir")
    journal.note_synced()
    files = rig.files()
    assert len(files[FIRST]) > durable + 200
    for length in range(durable, len(files[FIRST]) + 1):
        other = rig.with_files(files | {FIRST: files[FIRST][:length]})
        again = other.open()
        assert again.damage == ""
        assert entries(again)[:9] == written[0]
        kept = len(again)
        assert entries(again) == [*written[0], *((command(i), i, 3) for i in range(10, kept + 1))]
        other.lose_power()
        third = other.open()
        assert third.damage == ""
        assert third.opened.torn is None
        assert content(third) == content(again)
    assert kept == 14


def test_any_subset_of_unsynced_sectors_may_survive() -> None:
    rig, _ = small()
    rig.kill()
    journal = rig.open()
    durable = len(rig.files()[FIRST])
    for index in range(10, 15):
        journal.add(command(index) * 40, index, 3)
    journal.note_synced()
    files = rig.files()
    whole = files[FIRST]
    sectors = [durable, *range((durable // 512 + 1) * 512, len(whole), 512), len(whole)]
    assert 4 <= len(sectors) <= 7
    for keep in product((b"", b"\0", b"\xa5"), repeat=len(sectors) - 1):
        data = bytearray(whole)
        for start, end, filling in zip(sectors, sectors[1:], keep, strict=False):
            if filling:
                data[start:end] = filling * (end - start)
        again = rig.with_files(files | {FIRST: bytes(data)}).open()
        assert again.damage == ""
        assert again.last_index >= 9
        assert entries(again) == entries(journal)[: len(again)]
        assert (again.opened.torn is not None) == any(keep)


def test_a_hole_before_a_frame_that_knew_of_it_as_durable_is_damage() -> None:
    rig, written = small(stopped=True)
    files = rig.files()
    del files[SYNCED_NOTES]
    data = bytearray(files[FIRST])
    place = data.index(command(2))
    data[place] ^= 1
    journal = opened(rig, files | {FIRST: bytes(data)})
    assert journal is not None
    assert f"{FIRST} is damaged at byte" in journal.damage
    assert "body" in journal.damage
    assert entries(journal) == written[0][:1]


def test_a_damaged_vote_is_damage_and_grants_nothing_in_the_highest_term() -> None:
    rig, _ = small()
    files = rig.files()
    data = bytearray(files[FIRST])
    data[data.index(b"2@dir")] ^= 1
    journal = opened(rig, files | {FIRST: bytes(data)})
    assert journal is not None
    assert journal.damage
    assert journal.term == 3
    assert journal.voted_for == "unknown"


def test_damage_is_remembered_until_it_is_repaired() -> None:
    rig, written = small()
    data = bytearray(rig.files()[FIRST])
    data[data.index(command(5))] ^= 1
    damaged = bytes(data)
    rig.platter.put(FIRST, damaged)
    rig.kill()
    what = rig.open().damage
    rig.lose_power()
    journal = rig.open()
    assert journal.damage == what
    assert journal.opened.damage is None
    assert rig.files()[FIRST + ".damaged"] == damaged
    kept = len(journal)
    assert entries(journal) == written[0][:kept]
    # Caught up by a leader elected without it.
    for entry in written[0][kept:]:
        journal.add(*entry)
    journal.history.repaired(b"repaired")
    assert journal.damage == ""
    assert journal.position_of_vote == journal.position_needing_sync
    journal.sync()
    rig.settle()
    rig.lose_power()
    again = rig.open()
    assert again.damage == ""
    assert entries(again) == written[0]


def test_a_missing_segment_is_damage() -> None:
    rig, _ = small(segment_bytes=300)
    files = rig.files()
    segments = [name for name in files if name.endswith(".wal")]
    assert len(segments) >= 3
    for name in segments:
        journal = opened(rig, {k: v for k, v in files.items() if k != name})
        assert journal is None or journal.damage


def test_damage_is_told_with_its_place() -> None:
    rig, _ = small(segment_bytes=300)
    files = rig.files()
    data = bytearray(files[FIRST])
    place = data.rindex(b"QRJ1") + 2
    data[place] ^= 1
    journal = opened(rig, files | {FIRST: bytes(data)})
    assert journal is not None
    assert journal.opened.damage is not None
    assert (journal.opened.damage.file, journal.opened.damage.offset) == (FIRST, place - 2)
    assert journal.damage == f"{FIRST} is damaged at byte {place - 2}: a header is bad"


def test_frames_of_another_directory_at_the_same_place_are_damage() -> None:
    rig, _ = small()
    twin = Rig()
    other = twin.open(new_directory_id=b"\x09" * 16)
    other.set_formation(b"formation")
    for term in (1, 2, 3):
        other.set_term(term, f"{term}@dir")
    other.note_synced()
    files = rig.files()
    ours, theirs = files[FIRST], twin.files()[FIRST]
    start = ours.index(b"formation")
    end = theirs.index(b"1@dir") + 5
    spliced = ours[:start] + theirs[start:end] + ours[end:]
    assert spliced != ours
    journal = opened(rig, files | {FIRST: spliced})
    assert journal is None or journal.damage


def test_two_frames_that_changed_places_are_damage() -> None:
    rig = Rig()
    journal = rig.open()
    journal.set_term(1, "2@dir")
    journal.set_term(2, "3@dir")
    journal.sync()
    rig.settle()
    data = rig.files()[FIRST]
    first, second = data.index(b"2@dir") + 5, data.index(b"3@dir") + 5
    size = second - first
    start = first - size
    swapped = data[:start] + data[first:second] + data[start:first] + data[second:]
    again = opened(rig, rig.files() | {FIRST: swapped})
    assert again is not None
    assert "wrong place" in again.damage


def test_a_good_frame_that_makes_no_sense_is_damage_even_in_the_tail() -> None:
    rig, _ = small()
    rig.kill()
    journal = rig.open()
    journal.add(b"far ahead", 99, 3)
    journal.note_synced()
    again = opened(rig, rig.files())
    assert again is not None
    assert "entry 99 follows entry 9" in again.damage


def test_what_a_crash_left_is_passed_over_when_it_comes_back() -> None:
    """A segment whose first frame was torn, unlinked, and there again after a loss of power."""
    rig, written = small()
    rig.platter.put(SECOND, b"QRJ1 torn")
    rig.kill()
    journal = rig.open()
    assert journal.opened.torn is not None
    assert journal.opened.torn.file == SECOND
    assert content(journal) == written
    third = journal.segment_names[-1]
    assert third != SECOND
    assert SECOND not in rig.files()
    rig.platter.put(SECOND, b"QRJ1 torn")
    rig.kill()
    again = rig.open()
    assert again.damage == ""
    assert again.opened.torn is None
    assert content(again) == written


def test_files_that_a_fresh_segment_replaced_are_passed_over_when_they_come_back() -> None:
    rig, _ = small()
    old = rig.files()[FIRST]
    data = bytearray(old)
    data[data.index(command(2))] ^= 1
    rig.platter.put(FIRST, bytes(data))
    rig.kill()
    journal = rig.open()
    assert journal.damage
    journal.history.repaired(b"repaired")
    journal.sync()
    rig.settle()
    rig.platter.put(FIRST, old)
    rig.kill()
    again = rig.open()
    assert again.damage == ""
    assert content(again) == content(journal)


def test_yesterdays_segment_is_damage() -> None:
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 3)
    journal.sync()
    rig.settle()
    yesterday = rig.files()[FIRST]
    fill(journal, 4, 6)
    journal.sync()
    rig.settle()
    again = opened(rig, rig.files() | {FIRST: yesterday})
    assert again is not None
    assert "missing at its end" in again.damage


def test_a_folder_without_segments_that_was_used_before_is_refused() -> None:
    rig, _ = small()
    files = rig.files()
    with pytest.raises(DamagedError, match="holds no segment"):
        rig.with_files({SYNCED_NOTES: files[SYNCED_NOTES]}).open()


def test_a_later_format_is_refused_by_name() -> None:
    rig = Rig()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "FORMAT", 2)
        rig.open()
    with pytest.raises(DamagedError, match="has format 2, this release reads 1"):
        rig.with_files(rig.files()).open()


def test_bytes_of_a_journal_inside_a_command_are_no_frames() -> None:
    rig, _ = small()
    stolen = rig.files()[FIRST]
    rig.kill()
    journal = rig.open()
    journal.add(stolen, 10, 3)
    journal.sync()
    rig.settle()
    journal.add(b"torn", 11, 3)
    journal.note_synced()
    files = rig.files()
    files[FIRST] = files[FIRST][:-50]
    again = opened(rig, files)
    assert again is not None
    assert again.damage == ""
    assert again[-1] == (stolen, 10, 3)
