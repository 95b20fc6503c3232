import pytest

from ledger.chain import LogMark
from ledger.errors import LedgerError, UnknownFormatError
from ledger.frame import finish_frame
from ledger.gaps import Gap
from ledger.reader import LedgerReader
from ledger.segments import SegmentHeader
from ledger.verify import verify_ledger
from tests.unit.ledger.ledger_world import (
    CLUSTER,
    Node,
    fill,
    make_batches,
    marks_of,
    reseal,
)

BATCHES = make_batches(24, size=20, epochs={0: 2, 9: 5})
MARK = marks_of(BATCHES)[-1]


def small_node():
    node = Node(segment_bytes=2_000)
    fill(node.open(), BATCHES)
    return node


FILES = small_node().files()
HEADER_BYTES = len(SegmentHeader(CLUSTER, MARK).encode())


def node_with(files):
    node = Node()
    for name, content in files.items():
        node.platter.put(name, content)
    return node


def frame_at(name, position):
    """Where the frame that holds a byte begins, and the offset it begins at."""
    if position < HEADER_BYTES:
        return 0, int(name[4:24])
    for batch in BATCHES:
        start = FILES[name].find(batch.encoded)
        if start <= position < start + len(batch.encoded) and start >= 0:
            return start, batch.header.base_offset
    raise AssertionError


def test_a_good_ledger_is_proved():
    seen = []
    report = verify_ledger(small_node().disk, on_progress=lambda *step: seen.append(step))
    assert report.ok
    assert (report.log_start, report.log_end, report.head) == (0, MARK.log_end, MARK.head)
    assert (report.segments, report.batches) == (len(FILES), 24)
    assert report.records == MARK.log_end
    assert report.cluster_id == CLUSTER
    assert seen[-1] == (report.size, report.size) == (sum(map(len, FILES.values())),) * 2
    assert report.notes == ()


@pytest.mark.slow
def test_every_flipped_byte_is_found_at_its_place():
    assert len(FILES) > 2
    node = node_with(FILES)
    for name, content in FILES.items():
        for position in range(len(content)):
            node.platter.flip_bit(name, position, position % 8)
            report = verify_ledger(node.disk, cluster_id=CLUSTER, synced_to=MARK)
            node.platter.put(name, content)
            start, offset = frame_at(name, position)
            bad = report.first_bad
            assert bad is not None, (name, position)
            assert (bad.file, bad.position, bad.offset) == (name, start, offset)


def test_every_missing_end_is_found():
    name = max(FILES)
    for size in range(len(FILES[name])):
        node = node_with(FILES | {name: FILES[name][:size]})
        report = verify_ledger(node.disk, synced_to=MARK)
        assert report.first_bad is not None
        assert report.first_bad.file == name
        assert report.first_bad.position <= size


def test_an_unfinished_tail_of_a_live_node_is_a_note():
    name = max(FILES)
    last = FILES[name].index(BATCHES[-1].encoded)
    for size in range(last + 1, len(FILES[name])):
        node = node_with(FILES | {name: FILES[name][:size]})
        report = verify_ledger(node.disk, live=True)
        assert report.ok
        assert "unfinished" in report.notes[0]
        assert report.log_end == BATCHES[-1].header.base_offset
        assert not verify_ledger(node.disk).ok
        reader = LedgerReader(node.disk)
        assert [b.encoded for b in reader.batches()] == [b.encoded for b in BATCHES[:-1]]
        assert "unfinished" in reader.notes[0]


def test_a_segment_that_ends_too_early_in_the_middle_is_damage_also_on_a_live_node():
    name = sorted(FILES)[1]
    node = node_with(FILES | {name: FILES[name][:-1]})
    bad = verify_ledger(node.disk, live=True).first_bad
    assert bad is not None
    assert bad.file == name


def test_bad_bytes_behind_the_mark_are_a_note():
    name = max(FILES)
    start = FILES[name].index(BATCHES[-1].encoded)
    mark = marks_of(BATCHES)[-2]
    for position in range(start, len(FILES[name])):
        node = node_with(FILES)
        node.platter.flip_bit(name, position)
        report = verify_ledger(node.disk, synced_to=mark)
        assert report.ok
        assert report.log_end == mark.log_end
        assert "writes it again" in report.notes[0]
        reader = LedgerReader(node.disk, synced_to=mark)
        assert [b.encoded for b in reader.batches()] == [b.encoded for b in BATCHES[:-1]]
        assert reader.notes


def test_a_missing_segment_is_found():
    names = sorted(FILES)
    for name in names[1:]:
        node = node_with({n: c for n, c in FILES.items() if n != name})
        bad = verify_ledger(node.disk, synced_to=MARK).first_bad
        assert bad is not None
        assert bad.offset == int(name[4:24])
        assert "missing" in bad.sentence or "end is lost" in bad.sentence
    rest = {n: c for n, c in FILES.items() if n != names[0]}
    report = verify_ledger(node_with(rest).disk, synced_to=MARK)
    assert report.ok
    assert report.notes == (f"history from offset {int(names[1][4:24])}",)


def test_swapped_and_reordered_segments_are_found():
    names = sorted(FILES)
    for i, one in enumerate(names):
        for two in names[i + 1 :]:
            node = node_with(FILES | {one: FILES[two], two: FILES[one]})
            bad = verify_ledger(node.disk, synced_to=MARK).first_bad
            assert bad is not None
            assert (bad.file, bad.position) == (one, 0)
            assert "another segment's content" in bad.sentence


def test_batches_spliced_in_left_out_or_reordered_are_found():
    name = min(FILES)
    content = FILES[name]
    one, two = BATCHES[1].encoded, BATCHES[2].encoded
    for harmed in (
        content.replace(one, b""),
        content.replace(one + two, two + one),
        content.replace(one, one + one),
    ):
        bad = verify_ledger(node_with(FILES | {name: harmed}).disk).first_bad
        assert bad is not None
        assert "must follow" in bad.sentence
        assert bad.position in (content.index(one), content.index(two))


def test_a_rewritten_batch_breaks_the_chain_behind_it():
    for i in range(len(BATCHES) - 1):
        batch = BATCHES[i]
        forged = reseal(batch, provenance=type(batch.header.provenance)(principal="User:mallory"))
        files = {n: c.replace(batch.encoded, forged.encoded) for n, c in FILES.items()}
        bad = verify_ledger(node_with(files).disk).first_bad
        assert bad is not None
        assert "chain is broken" in bad.sentence
        assert bad.offset == BATCHES[i + 1].header.base_offset


def test_a_rewritten_last_batch_is_found_by_a_head_kept_elsewhere():
    forged = reseal(BATCHES[-1], timestamp_ms=BATCHES[-1].header.timestamp_ms + 1)
    files = {n: c.replace(BATCHES[-1].encoded, forged.encoded) for n, c in FILES.items()}
    disk = node_with(files).disk
    assert verify_ledger(disk).ok
    bad = verify_ledger(disk, known={MARK.log_end: MARK.head}).first_bad
    assert bad is not None
    assert bad.offset == BATCHES[-1].header.base_offset
    assert "remembered elsewhere" in bad.sentence


def test_a_history_rewritten_to_its_end_is_found_by_any_hash_kept_elsewhere():
    forged = make_batches(24, size=20, epochs={0: 2, 9: 5}, tag=1_000)
    node = Node(segment_bytes=2_000)
    fill(node.open(), forged)
    assert verify_ledger(node.disk).ok
    middle = marks_of(BATCHES)[12]
    bad = verify_ledger(node.disk, known={middle.log_end: middle.head}).first_bad
    assert bad is not None
    assert bad.offset == BATCHES[11].header.base_offset


def test_epochs_and_timestamps_that_fall_are_found():
    for change, word in (({"epoch": 1}, "epoch falls"), ({"timestamp_ms": 5}, "timestamp falls")):
        forged = reseal(BATCHES[-1], **change)
        files = {n: c.replace(BATCHES[-1].encoded, forged.encoded) for n, c in FILES.items()}
        bad = verify_ledger(node_with(files).disk).first_bad
        assert bad is not None
        assert word in bad.sentence


def test_a_segment_of_another_cluster_is_found():
    other = Node(cluster_id="other", segment_bytes=2_000)
    fill(other.open(), make_batches(24, cluster_id="other", size=20))
    name = min(FILES)
    bad = verify_ledger(node_with(FILES | {name: other.files()[name]}).disk, cluster_id=CLUSTER)
    assert bad.first_bad is not None
    assert "belongs to cluster 'other'" in bad.first_bad.sentence
    assert verify_ledger(other.disk).ok
    assert not verify_ledger(other.disk, cluster_id=CLUSTER).ok


def test_a_newer_format_is_refused_not_called_damage():
    name = min(FILES)
    batch = BATCHES[1].encoded
    newer = finish_frame(batch[:4] + b"\x00\x02" + batch[6:-4])
    node = node_with(FILES | {name: FILES[name].replace(batch, newer)})
    with pytest.raises(LedgerError, match="newer release"):
        verify_ledger(node.disk)
    with pytest.raises(UnknownFormatError):
        list(LedgerReader(node.disk).batches())


def test_a_gap_that_a_marker_names_is_backfill_in_progress():
    names = sorted(FILES)
    start, end = int(names[1][4:24]), int(names[2][4:24])
    rest = {n: c for n, c in FILES.items() if n != names[1]}
    node = node_with(rest)
    assert not verify_ledger(node.disk).ok
    node.platter.put(Gap(start, end).path, b"")
    report = verify_ledger(node.disk, synced_to=MARK)
    assert report.ok
    assert "is fetching offsets" in report.notes[0]
    assert report.log_start == end
    node.platter.flip_bit(names[0], 300)
    assert not verify_ledger(node.disk, synced_to=MARK).ok


def test_no_ledger_is_said_so():
    with pytest.raises(LedgerError, match="no ledger is here"):
        verify_ledger(Node().disk)
    with pytest.raises(LedgerError, match="no ledger is here"):
        LedgerReader(Node().disk)
    assert not verify_ledger(Node().disk, cluster_id=CLUSTER, synced_to=MARK).ok


def test_a_reader_follows_a_running_node():
    node = Node(segment_bytes=2_000)
    ledger = fill(node.open(), BATCHES[:5])
    reader = LedgerReader(node.disk)
    assert reader.log_end == ledger.log_end
    fill(ledger, BATCHES[5:])
    reader.refresh()
    assert [b.encoded for b in reader.batches()] == [b.encoded for b in BATCHES]
    assert reader.notes == []


def test_a_reader_finds_the_log_as_it_was_at_a_time():
    reader = LedgerReader(node_with(FILES).disk)
    for batch in BATCHES:
        assert reader.offset_at_time(batch.header.timestamp_ms) == batch.header.end_offset
    assert reader.offset_at_time(BATCHES[0].header.timestamp_ms - 1) == 0
    assert reader.offset_at_time(2**62) == MARK.log_end


def test_the_beginning_must_be_the_hash_of_the_cluster_id():
    wrong = LogMark(0, bytes(32), 0, 0)
    name = min(FILES)
    header = SegmentHeader(CLUSTER, wrong).encode()
    node = node_with(FILES | {name: header + FILES[name][len(header) :]})
    bad = verify_ledger(node.disk).first_bad
    assert bad is not None
    assert "SHA-256 of the cluster id" in bad.sentence


@pytest.mark.parametrize("position", [0, 100, -1])
def test_a_copy_in_the_archive_that_differs_is_found_at_its_byte(position):
    name = min(FILES)
    twin = name.replace("log/", "archive/")
    assert verify_ledger(node_with({**FILES, twin: FILES[name]}).disk).ok
    changed = bytearray(FILES[name])
    changed[position] ^= 1
    bad = verify_ledger(node_with({**FILES, twin: bytes(changed)}).disk).first_bad
    assert bad is not None
    assert (bad.file, bad.position) == (twin, position % len(changed))


def test_a_copy_in_the_archive_that_is_short_is_found_at_its_end():
    name = min(FILES)
    twin = name.replace("log/", "archive/")
    bad = verify_ledger(node_with({**FILES, twin: FILES[name][:-1]}).disk).first_bad
    assert bad is not None
    assert (bad.file, bad.position) == (twin, len(FILES[name]) - 1)
