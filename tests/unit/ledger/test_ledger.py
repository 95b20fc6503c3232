import itertools

import pytest

from ledger.chain import LogMark, first_hash
from ledger.errors import (
    ChainBrokenError,
    DamagedLedgerError,
    DivergedError,
    HistoryMissingError,
    WrongClusterError,
)
from ledger.index import EpochStart
from ledger.ledger import Accepted, Skipped
from tests.unit.controller.counted import Counted
from tests.unit.ledger.ledger_world import (
    CLUSTER,
    Node,
    fill,
    make_batch,
    make_batches,
    marks_of,
    reseal,
)


def test_an_empty_ledger_is_at_the_beginning():
    ledger = Node().open()
    assert (ledger.log_start, ledger.log_end, ledger.head) == (0, 0, first_hash(CLUSTER))
    assert ledger.mark() == LogMark.beginning(CLUSTER)
    assert ledger.read_from(0, 1000, 1000) == []
    assert list(ledger.batches(0)) == []


def test_the_fence_skips_and_does_not_change_anything():
    node = Node()
    ledger = node.open()
    first, second = make_batches(2)
    assert ledger.accept(1, first) == Accepted(already_there=False)
    before = ledger.mark(), node.files()
    assert isinstance(ledger.accept(2, second), Skipped)  # a batch of an old epoch
    assert isinstance(ledger.accept(1, first), Skipped)  # a batch at a base that is taken
    ahead = reseal(second, base_offset=second.header.base_offset + 1)
    assert isinstance(ledger.accept(1, ahead), Skipped)
    assert (ledger.mark(), node.files()) == before
    assert isinstance(ledger.accept(1, second), Accepted)


def test_a_wrong_previous_hash_halts():
    ledger = Node().open()
    first, second = make_batches(2)
    ledger.accept(1, first)
    with pytest.raises(ChainBrokenError, match="chain is broken"):
        ledger.accept(1, reseal(second, previous_hash=bytes(32)))
    with pytest.raises(ChainBrokenError, match="timestamp falls"):
        ledger.accept(1, reseal(second, timestamp_ms=5))


def test_epochs_may_rise_but_not_fall():
    ledger = Node().open()
    first = make_batch(ledger.mark(), epoch=5)
    ledger.accept(5, first)
    with pytest.raises(ChainBrokenError, match="epoch falls"):
        ledger.accept(4, make_batch(ledger.mark(), epoch=4))


def test_reading_gives_the_bytes_that_were_sealed():
    batches = make_batches(300, size=200)
    for cold in (False, True):
        node = Node(segment_bytes=20_000)
        ledger = fill(node.open(), batches)
        if cold:
            ledger = node.reopen(node.sync(ledger))
        assert len(node.files()) > 3
        assert [b.encoded for b in ledger.batches(0)] == [b.encoded for b in batches]
        offset, seen = 0, []
        while found := ledger.read_from(offset, 3000, ledger.log_end):
            assert len(found) == 1 or sum(map(len, found)) <= 3000
            seen += found
            offset = ledger.log_end if len(seen) == 300 else batches[len(seen)].header.base_offset
        assert seen == [b.encoded for b in batches]


def test_at_least_one_batch_whatever_max_bytes_says():
    batches = make_batches(5)
    node = Node()
    ledger = fill(node.open(), batches)
    assert ledger.read_from(0, 0, 1000) == [batches[0].encoded]
    cold = node.reopen(node.sync(ledger))
    assert cold.read_from(0, 0, 1000) == [batches[0].encoded]
    assert cold.read_from(0, 1, 1000) == [batches[0].encoded]


def test_reads_stop_at_the_high_watermark():
    batches = make_batches(9)
    node = Node()
    ledger = fill(node.open(), batches)
    for reader in node.warm_and_cold(ledger):
        for up_to in range(reader.log_end + 2):
            found = reader.read_from(0, 10**6, up_to)
            fitting = [b.encoded for b in batches if b.header.end_offset <= up_to]
            assert found == fitting


def test_an_offset_inside_a_batch_gives_that_batch():
    batches = make_batches(9)
    node = Node()
    ledger = fill(node.open(), batches)
    for reader in node.warm_and_cold(ledger):
        for batch in batches:
            for offset in range(batch.header.base_offset, batch.header.end_offset):
                assert reader.read_from(offset, 0, 10**6) == [batch.encoded]


def test_rolling_gives_the_same_bytes_whatever_the_timing():
    batches = make_batches(120, size=300)
    one = Node(seed=1, segment_bytes=5_000)
    fill(one.open(), batches)
    two = Node(seed=2, segment_bytes=5_000)
    ledger = two.open()
    for i, batch in enumerate(batches):
        if i % 7 == 3:
            mark = two.sync(ledger)
        if i % 17 == 5:
            ledger = two.reopen(mark)
            for again in batches[:i]:
                if again.header.base_offset >= mark.log_end:
                    assert ledger.accept(1, again) == Accepted(already_there=True)
        ledger.accept(1, batch)
    assert len(one.files()) > 8
    assert one.files() == two.files()


def test_batches_applied_again_must_be_equal():
    batches = make_batches(40, size=100)
    node = Node(segment_bytes=2_000)
    ledger = fill(node.open(), batches)
    mark = marks_of(batches)[10]
    before = node.files()
    for synced in (mark, None):
        ledger = node.reopen(synced)
        start = synced.log_end if synced else 0
        assert ledger.log_end == start
        assert ledger.read_from(start, 100, 10**6) == []  # not accepted yet, so not readable
        again = [b for b in batches if b.header.base_offset >= start]
        assert all(ledger.accept(1, b) == Accepted(already_there=True) for b in again)
        assert ledger.head == batches[-1].hash
        assert node.files() == before
        assert node.events() == []


def test_another_batch_in_the_place_of_one_on_disk_halts():
    batches = make_batches(8)
    node = Node()
    fill(node.open(), batches)
    marks = marks_of(batches)
    ledger = node.reopen(marks[3])
    before = node.files()
    with pytest.raises(DivergedError, match="Keep the node's folder"):
        ledger.accept(1, make_batch(marks[3], 1, tag=99))
    assert node.files() == before


def test_another_history_in_the_next_segment_halts():
    batches = make_batches(40, size=100)
    node = Node(segment_bytes=1_000)
    fill(node.open(), batches)
    second = sorted(node.files())[1]
    base = int(second[4:24])
    at = next(i for i, b in enumerate(batches) if b.header.base_offset == base)
    mark = marks_of(batches)[at - 1]
    other = reseal(batches[at - 1], timestamp_ms=batches[at - 1].header.timestamp_ms - 1)
    first = min(node.files())
    content = node.files()[first]
    node.platter.put(first, content[: -len(other.encoded)] + other.encoded)
    ledger = node.reopen(mark)
    assert ledger.accept(1, other) == Accepted(already_there=True)
    with pytest.raises(DivergedError):
        ledger.accept(1, make_batch(ledger.mark(), 1, tag=5))


def test_a_tail_cut_anywhere_behind_the_mark_is_cut_and_written_again():
    batches = make_batches(6)
    whole = Node()
    fill(whole.open(), batches)
    (name, content), *_ = whole.files().items()
    marks = marks_of(batches)
    mark, start = marks[2], content.index(batches[2].encoded)
    for size in range(start, len(content)):
        node = Node()
        node.open()
        node.platter.put(name, content[:size])
        ledger = node.reopen(mark)
        for batch in batches[2:]:
            assert isinstance(ledger.accept(1, batch), Accepted)
        assert node.files() == {name: content}
        assert [b.encoded for b in ledger.batches(0)] == [b.encoded for b in batches]
        boundary = any(size == content.index(b.encoded) for b in batches[2:])
        assert ("ledger_tail_cut" in node.events()) != boundary


def test_any_flipped_byte_behind_the_mark_is_cut_and_written_again():
    batches = make_batches(5)
    whole = Node()
    fill(whole.open(), batches)
    (name, content), *_ = whole.files().items()
    mark, start = marks_of(batches)[2], content.index(batches[2].encoded)
    for position in range(start, len(content)):
        node = Node()
        node.open()
        node.platter.put(name, content)
        node.platter.flip_bit(name, position, position % 8)
        ledger = node.reopen(mark)
        for batch in batches[2:]:
            assert isinstance(ledger.accept(1, batch), Accepted)
        assert node.files() == {name: content}
        assert "ledger_tail_cut" in node.events()


def test_zeroed_sectors_over_several_segments_are_written_again():
    batches = make_batches(60, size=300)
    node = Node(segment_bytes=4_000)
    ledger = node.open()
    fill(ledger, batches[:10])
    mark = node.sync(ledger)
    fill(ledger, batches[10:])
    names = sorted(node.files())
    before = node.files()
    node.platter.put(names[5], bytes(len(before[names[5]])))
    ledger = node.reopen(mark)
    fill(ledger, batches[10:])
    assert node.files() == before
    assert "ledger_tail_cut" in node.events()


def test_a_ledger_cut_anywhere_before_the_mark_is_refused():
    batches = make_batches(4)
    whole = Node()
    ledger = fill(whole.open(), batches)
    mark = whole.sync(ledger)
    (name, content), *_ = whole.files().items()
    for size in range(len(content)):
        node = Node()
        node.open()
        node.platter.put(name, content[:size])
        with pytest.raises(DamagedLedgerError) as caught:
            node.reopen(mark)
        assert caught.value.file == name
        assert caught.value.base_offset == 0
        assert caught.value.position <= size
        assert node.files() == {name: content[:size]}  # nothing is repaired by cutting


def test_a_missing_segment_before_the_mark_is_refused():
    batches = make_batches(60, size=300)
    node = Node(segment_bytes=4_000)
    ledger = fill(node.open(), batches)
    mark = node.sync(ledger)
    names = sorted(node.files())
    node.platter.remove(names[-1])
    with pytest.raises(DamagedLedgerError):
        node.reopen(mark)
    for name in names[:-1]:
        node.platter.remove(name)
    with pytest.raises(DamagedLedgerError, match="no segment is here"):
        node.reopen(mark)


def test_another_last_batch_before_the_mark_is_refused():
    batches = make_batches(4)
    node = Node()
    mark = node.sync(fill(node.open(), batches))
    (name, content), *_ = node.files().items()
    last = batches[-1]
    other = reseal(last, timestamp_ms=last.header.timestamp_ms + 1)
    node.platter.put(name, content.replace(last.encoded, other.encoded))
    with pytest.raises(DamagedLedgerError, match="its hash differs"):
        node.reopen(mark)


def test_damage_in_an_older_segment_is_found_when_it_is_read():
    batches = make_batches(60, size=300)
    node = Node(segment_bytes=4_000)
    mark = node.sync(fill(node.open(), batches))
    names = sorted(node.files())
    bad = batches[2]
    position = node.files()[names[0]].index(bad.encoded)
    node.platter.flip_bit(names[0], position + 100)
    ledger = node.reopen(mark)
    for read in (
        lambda: list(ledger.batches(0)),
        lambda: ledger.read_from(bad.header.base_offset, 10, 10**6),
    ):
        with pytest.raises(DamagedLedgerError) as caught:
            read()
        assert (caught.value.file, caught.value.position) == (names[0], position)
        assert caught.value.offset == bad.header.base_offset


def test_the_folder_of_another_cluster_is_refused():
    node = Node(cluster_id="one")
    fill(node.open(), make_batches(3, cluster_id="one"))
    node.cluster_id = "two"
    with pytest.raises(WrongClusterError, match=r"'one'.*'two'"):
        node.reopen()


def test_epochs_and_where_they_end():
    batches = make_batches(200, size=100, epochs={0: 1, 20: 3, 21: 4, 90: 7, 199: 9})
    starts = {b.header.epoch: b.header.base_offset for b in reversed(batches)}
    for segment_bytes in (1_000, 100_000):
        node = Node(segment_bytes=segment_bytes)
        ledger = fill(node.open(), batches)
        for reader in node.warm_and_cold(ledger):
            assert reader.epoch_start_offsets == [
                EpochStart(epoch, starts[epoch]) for epoch in (1, 3, 4, 7, 9)
            ]
            assert reader.end_offset_for_epoch(0) is None
            assert reader.end_offset_for_epoch(2) == (1, starts[3])
            assert reader.end_offset_for_epoch(4) == (4, starts[7])
            assert reader.end_offset_for_epoch(8) == (7, starts[9])
            assert reader.end_offset_for_epoch(12) == (9, reader.log_end)


@pytest.mark.parametrize(("epoch", "found"), [(12, 9), (9, 9), (8, 7)])
def test_to_find_the_end_of_a_new_epoch_few_segments_are_looked_at(monkeypatch, epoch, found):
    """Every fetch asks for it, and the log may have thousands of segments and epochs."""
    epochs = {20: 3, 21: 4, 90: 5, 120: 6, 180: 7, 199: 9}
    batches = make_batches(200, size=100, epochs={0: 1} | epochs)
    node = Node(segment_bytes=1_000)
    ledger = fill(node.open(), batches)
    assert len(ledger.catalogue.segments) > 40
    with Counted(monkeypatch) as counted:
        end = ledger.end_offset_for_epoch(epoch)
    assert end[0] == found
    assert counted.count < 150


def test_hash_at_is_known_at_every_batch_end_and_nowhere_else():
    batches = make_batches(100, size=100)
    node = Node(segment_bytes=2_000)
    ledger = fill(node.open(), batches)
    expected = {b.header.end_offset: b.hash for b in batches} | {0: first_hash(CLUSTER)}
    for reader in node.warm_and_cold(ledger):
        for offset in range(reader.log_end + 3):
            assert reader.hash_at(offset) == expected.get(offset)


def test_the_cache_is_bounded_and_what_falls_out_is_read_from_disk():
    batches = make_batches(200, size=400)
    ledger = Node(segment_bytes=30_000).open()
    ledger._newest._limit = 10_000
    fill(ledger, batches)
    assert ledger._newest.bytes <= 10_000
    assert ledger._newest.start_offset > 0
    for batch in batches:
        assert ledger.read_from(batch.header.base_offset, 1, 10**6) == [batch.encoded]
        assert ledger.hash_at(batch.header.end_offset) == batch.hash


def test_cached_batches_are_shared_not_copied():
    batches = make_batches(3)
    ledger = fill(Node().open(), batches)
    assert ledger.read_from(0, 10**6, 10**6)[0] is ledger.read_from(0, 10**6, 10**6)[0]


def test_a_full_disk_leaves_the_ledger_as_it_was_and_heals():
    batches = make_batches(30, size=300)
    for room in itertools.chain(range(0, 2_000, 97), range(2_000, 12_000, 331)):
        node = Node(segment_bytes=4_000)
        ledger = node.open()
        node.faults.capacity_bytes = room
        for batch in batches:
            try:
                ledger.accept(1, batch)
            except OSError:
                before = ledger.mark()
                with pytest.raises(OSError, match="space"):
                    ledger.accept(1, batch)
                assert ledger.mark() == before
                node.faults.heal()
                assert isinstance(ledger.accept(1, batch), Accepted)
        assert [b.encoded for b in ledger.batches(0)] == [b.encoded for b in batches]


def test_a_failed_sync_is_never_repeated():
    batches = make_batches(3)
    node = Node()
    ledger = fill(node.open(), batches[:2])
    node.faults.fail("sync")
    outcome = []
    ledger.sync(outcome.append)
    node.settle()
    assert [type(error) for error in outcome] == [OSError]
    assert ledger.failed is outcome[0]
    node.faults.heal()
    with pytest.raises(OSError, match="simulated"):
        ledger.sync(outcome.append)
    with pytest.raises(OSError, match="simulated"):
        ledger.accept(1, batches[2])


def test_archived_segments_stay_readable():
    batches = make_batches(60, size=300)
    node = Node(segment_bytes=4_000)
    ledger = fill(node.open(), batches)
    assert ledger.archive_before(10**6) == []  # nothing is synced yet
    node.sync(ledger)
    before = node.files()
    moved = ledger.archive_before(ledger.log_end)
    assert len(moved) == len(before) - 1
    assert sorted(node.files("archive")) == [f"archive/{name}" for name in moved]
    for reader in node.warm_and_cold(ledger):
        assert reader.log_start == 0
        assert [b.encoded for b in reader.batches(0)] == [b.encoded for b in batches]


def test_offsets_before_the_history_are_refused():
    batches = make_batches(60, size=300)
    node = Node(segment_bytes=4_000)
    mark = node.sync(fill(node.open(), batches))
    names = sorted(node.files())
    for name in names[:2]:
        node.platter.remove(name)
    ledger = node.reopen(mark)
    assert ledger.log_start == int(names[2][4:24])
    with pytest.raises(HistoryMissingError, match="Load a snapshot"):
        ledger.read_from(ledger.log_start - 1, 10, 10**6)
    assert ledger.hash_at(ledger.log_start - 1) is None
    assert ledger.hash_at(ledger.log_start) is not None
    assert next(ledger.batches(ledger.log_start)).header.base_offset == ledger.log_start


def test_kept_indexes_are_only_a_help():
    batches = make_batches(900, size=300)
    node = Node(segment_bytes=120_000)
    mark = node.sync(fill(node.open(), batches))
    kept = sorted(node.files("index"))
    assert len(kept) == len(node.files()) - 1
    for harm in ("flip", "cut", "swap", "remove"):
        for i, name in enumerate(kept):
            data = node.files("index").get(name, b"")
            if harm == "flip":
                node.platter.flip_bit(name, len(data) // 2)
            elif harm == "cut":
                node.platter.put(name, data[:-1])
            elif harm == "swap":
                node.platter.put(name, node.files("index")[kept[i - 1]])
            else:
                node.platter.remove(name)
        ledger = node.reopen(mark)
        for batch in batches[::7]:
            assert ledger.read_from(batch.header.base_offset, 1, 10**6) == [batch.encoded]


def test_syncs_may_overlap_and_each_says_what_it_made_durable():
    batches = make_batches(60, size=300)
    node = Node(segment_bytes=2_000)
    ledger = node.open()
    outcomes = []
    called = []
    for batch in batches:
        ledger.accept(1, batch)
        called.append(ledger.sync(outcomes.append))
    assert called == marks_of(batches)[1:]
    node.settle()
    assert outcomes == [None] * len(batches)
    node.lose_power()
    assert [b.encoded for b in node.reopen(called[-1]).batches(0)] == [b.encoded for b in batches]
