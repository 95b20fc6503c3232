import itertools
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import DamagedBatchError, UnknownFormatError
from ledger.frame import finish_frame
from metadata.steps import finished
from runtime.simulated.disk_faults import SLOW
from snapshots.checkpoint import (
    BLOCK_BYTES,
    CheckpointChecker,
    CheckpointHeader,
    CheckpointId,
    encode_header,
    parse_header,
)
from snapshots.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    DamagedCheckpointError,
    PositionOutOfRangeError,
)
from snapshots.fetching import CheckpointFetch
from snapshots.store import CheckpointStore, load_steps, superfluous
from snapshots.trigger import CheckpointTrigger
from tests.unit.ledger.ledger_world import CLUSTER, Node

RECORDS = [msgspec.msgpack.encode([1, 0, i, "r" * 1000]) for i in range(150)]


def header(offset=1_000, **changes):
    fields = {
        "cluster_id": CLUSTER,
        "offset": offset,
        "epoch": 7,
        "timestamp_ms": 1_700_000_000_000,
        "chain_hash": bytes(range(32)),
        "state_hash": bytes(range(64)),
        "generation": 2,
        "voters": b"\x91\x01",
        "extensions": {3: b"later"},
    }
    return CheckpointHeader(**(fields | changes))


def store_of(node):
    return CheckpointStore(node.disk, node.cluster_id, node.process.clock, node.log)


def load(node, checkpoint=None):
    """Load a checkpoint; the newest if none is named."""
    checkpoint = checkpoint or store_of(node).newest()
    return finished(load_steps(node.disk, node.cluster_id, checkpoint))


def write(node, store, offset=1_000, records=RECORDS, **changes):
    outcome = []
    store.write(header(offset, **changes), records, lambda *result: outcome.append(result))
    node.settle()
    (result,) = outcome
    return result


def small_checkpoint():
    node = Node()
    write(node, store_of(node), records=RECORDS[:3])
    (content,) = node.files("checkpoints").values()
    return content


NAME = f"checkpoints/{header().id.name}"
SMALL = small_checkpoint()


def decoded(loaded):
    return [record for block in loaded.blocks for record in msgspec.msgpack.decode(block.content)]


def test_what_was_written_is_loaded():
    node = Node()
    store = store_of(node)
    assert write(node, store) == (CheckpointId(1_000, 7), None)
    for life in range(2):
        if life == 1:
            node.start()
        again = store if life == 0 else store_of(node)
        loaded = load(node)
        assert loaded.header == header() == again.header(again.newest())
        assert decoded(loaded) == [msgspec.msgpack.decode(record) for record in RECORDS]
        assert len(loaded.blocks) == 3
        assert loaded.size == again.size(again.newest())
    assert node.events() == []
    assert list(node.files("checkpoints")) == [NAME]
    assert NAME == "checkpoints/00000000000000001000-0000000007.checkpoint"


def test_the_same_image_gives_the_same_bytes():
    contents = set()
    for seed in (1, 2):
        node = Node(seed=seed)
        write(node, store_of(node))
        contents |= set(node.files("checkpoints").values())
    assert len(contents) == 1


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3 * BLOCK_BYTES), max_size=12))
def test_blocks_hold_all_records_in_order(sizes):
    node = Node()
    store = store_of(node)
    records = [msgspec.msgpack.encode([i, "x" * size]) for i, size in enumerate(sizes)]
    write(node, store, records=records)
    assert decoded(load(node)) == [msgspec.msgpack.decode(r) for r in records]


def test_every_flipped_byte_is_found_at_its_place():
    starts = [0, SMALL.index(b"QRTK"), SMALL.index(b"QRTF"), len(SMALL)]
    node = Node()
    for position in range(len(SMALL)):
        node.platter.put(NAME, SMALL)
        node.platter.flip_bit(NAME, position, position % 8)
        with pytest.raises(DamagedCheckpointError) as caught:
            load(node, CheckpointId(1_000, 7))
        assert caught.value.position == max(s for s in starts if s <= position)


def test_every_early_end_and_every_byte_too_many_is_found():
    node = Node()
    for content in (*(SMALL[:size] for size in range(len(SMALL))), SMALL + b"\0", SMALL + SMALL):
        node.platter.put(NAME, content)
        with pytest.raises(DamagedCheckpointError):
            load(node, CheckpointId(1_000, 7))


@given(st.integers(1, 700))
def test_the_size_of_the_pieces_does_not_matter(size):
    checker = CheckpointChecker()
    blocks = []
    for at in range(0, len(SMALL), size):
        blocks += checker.feed(SMALL[at : at + size])
    assert checker.finish() == header()
    assert len(blocks) == 1


def test_blocks_left_out_doubled_or_swapped_are_found():
    node = Node()
    write(node, store_of(node), records=RECORDS)
    (content,) = node.files("checkpoints").values()
    cuts = [content.index(b"QRTK")]
    cuts += [content.index(b"QRTK", cuts[0] + 1)]
    cuts += [content.index(b"QRTK", cuts[1] + 1), content.index(b"QRTF")]
    one, two, three = (content[a:b] for a, b in itertools.pairwise(cuts))
    start, end = content[: cuts[0]], content[cuts[3] :]
    for blocks in (two + three, one + one + three, two + one + three, one + three):
        checker = CheckpointChecker()
        with pytest.raises(DamagedBatchError, match="another content"):
            checker.feed(start + blocks + end)


def test_a_damaged_one_is_put_aside_and_the_one_before_is_the_newest():
    node = Node()
    store = store_of(node)
    for offset in (1_000, 2_000, 3_000):
        write(node, store, offset)
    newest = f"checkpoints/{store.newest().name}"
    node.platter.flip_bit(newest, 70_000)
    node.start()
    store = store_of(node)
    with pytest.raises(DamagedCheckpointError):
        load(node)
    store.put_aside(store.newest())
    assert load(node).header.offset == 2_000
    assert [one.offset for one in store.list()] == [1_000, 2_000]
    assert newest + ".damaged" in node.files("checkpoints")
    assert store.newest(at_most=1_999).offset == 1_000
    assert store.newest(at_most=999) is None


def test_a_checkpoint_under_another_name_or_of_another_cluster_is_refused():
    node = Node()
    node.platter.put("checkpoints/00000000000000002000-0000000007.checkpoint", SMALL)
    with pytest.raises(DamagedCheckpointError, match="content of checkpoint"):
        load(node, CheckpointId(2_000, 7))
    other = Node(cluster_id="other")
    other.platter.put(NAME, SMALL)
    with pytest.raises(DamagedCheckpointError, match="belongs to cluster"):
        load(other, CheckpointId(1_000, 7))
    with pytest.raises(CheckpointError, match="of cluster"):
        store_of(other).write(header(), [], lambda *_: None)


def test_a_newer_format_is_refused():
    first = encode_header(header())
    with pytest.raises(UnknownFormatError, match="newer release"):
        parse_header(finish_frame(first[:4] + b"\x00\x03" + first[6:-4]))


def test_ranges_are_served():
    node = Node()
    store = store_of(node)
    write(node, store)
    (content,) = node.files("checkpoints").values()
    which = store.newest()
    assert store.read_range(which, 0, 10) == (len(content), content[:10])
    assert store.read_range(which, len(content) - 3, 10) == (len(content), content[-3:])
    assert store.read_range(which, len(content), 10) == (len(content), b"")
    for position in (-1, len(content) + 1):
        with pytest.raises(PositionOutOfRangeError):
            store.read_range(which, position, 10)
    for use in (
        partial(load, node),
        store.size,
        store.header,
        lambda one: store.read_range(one, 0, 1),
    ):
        with pytest.raises(CheckpointNotFoundError):
            use(CheckpointId(5, 5))


def test_ids_are_parsed_strictly():
    assert CheckpointId.parse("00000000000000001000-0000000007") == CheckpointId(1_000, 7)
    for text in ("", "1-7", "../x", "00000000000000001000-0000000007.part", "0" * 31):
        with pytest.raises(CheckpointError):
            CheckpointId.parse(text)


def test_only_one_is_written_at_a_time_and_it_may_be_cancelled():
    node = Node()
    store = store_of(node)
    outcome = []
    store.write(header(), RECORDS, outcome.append)
    with pytest.raises(CheckpointError, match="being written"):
        store.write(header(2_000), RECORDS, outcome.append)
    store.cancel()
    node.settle()
    assert outcome == []
    assert node.files("checkpoints") == {}
    assert write(node, store) == (CheckpointId(1_000, 7), None)


def test_one_that_is_cancelled_while_it_is_synced_leaves_the_next_one_alone():
    for wait in range(12):
        node = Node(seed=wait)
        store = store_of(node)
        node.faults.set_profile(SLOW)
        store.write(header(), RECORDS[:5], lambda *_: None)
        node.world.run_for(wait / 10)
        store.cancel()
        store.write(header(), RECORDS, lambda *_: None)
        for _ in range(50):
            if NAME in node.files("checkpoints"):
                load(node, CheckpointId(1_000, 7))  # what has the name is whole
            node.world.run_for(0.1)
        assert len(decoded(load(node))) in (5, len(RECORDS))
        assert list(node.files("checkpoints")) == [NAME]


def test_a_kill_at_any_step_leaves_the_old_or_both():
    for step in range(40):
        node = Node(seed=step)
        write(node, store_of(node))
        node.start()
        store = store_of(node)
        node.faults.kill_at(step, torn=0.5)
        outcome = []
        store.write(header(2_000), RECORDS, lambda *r, outcome=outcome: outcome.append(r))
        node.settle()
        node.faults.spare()
        died = not node.process.alive
        node.lose_power()
        node.start()
        store = store_of(node)
        assert all(not name.endswith(".part") for name in node.files("checkpoints"))
        loaded = load(node)
        assert loaded.header.offset in (1_000, 2_000)
        assert node.events() == []  # what is there under its name is whole
        if outcome:
            assert loaded.header.offset == 2_000
        if not died:
            assert step > 5
            return
    raise AssertionError


def test_a_full_disk_is_reported_and_leaves_nothing_behind():
    node = Node()
    store = store_of(node)
    write(node, store)
    before = node.files("checkpoints")
    for room in (0, 500, 100_000):
        node.faults.capacity_bytes = sum(map(len, before.values())) + room
        written, error = write(node, store, 2_000)
        assert written is None
        assert isinstance(error, OSError)
        assert node.files("checkpoints") == before
    node.faults.heal()
    assert write(node, store, 2_000)[0] == CheckpointId(2_000, 7)


def test_thinning_keeps_the_newest_and_one_in_every_so_many():
    ids = [CheckpointId(offset, 1) for offset in range(10_000, 2_000_001, 10_000)]
    removed = superfluous(ids, 3, 250_000)
    kept = [one.offset for one in ids if one not in removed]
    assert kept[-3:] == [1_980_000, 1_990_000, 2_000_000]
    distances = [b - a for a, b in zip([0, *kept], kept, strict=False)]
    assert max(distances) <= 250_000
    assert len(kept) == 3 + 7
    assert superfluous(ids[:3], 3, 250_000) == []
    sparse = [CheckpointId(offset, 1) for offset in range(400_000, 9_000_000, 400_000)]
    assert superfluous(sparse, 1, 250_000) == []


def test_thinning_out_removes_files():
    node = Node()
    store = store_of(node)
    for offset in range(1_000, 9_000, 1_000):
        write(node, store, offset, RECORDS[:1])
    store.thin_out(keep_newest=2, keep_every=3_000)
    assert [one.offset for one in store.list()] == [3_000, 6_000, 7_000, 8_000]


@pytest.mark.parametrize("stop_after", range(5))
def test_fetching_goes_on_after_a_restart(stop_after):
    peer = Node()
    write(peer, store_of(peer))
    (content,) = peer.files("checkpoints").values()
    node = Node()
    which = CheckpointId(1_000, 7)
    fetch = CheckpointFetch(node.disk, CLUSTER, which)
    list(fetch.prepare())
    for _ in range(stop_after):
        fetch.add(content[fetch.position : fetch.position + 30_000])
    fetch.close()
    node.start()
    store_of(node)
    fetch = CheckpointFetch(node.disk, CLUSTER, which)
    list(fetch.prepare())
    assert fetch.position == stop_after * 30_000
    while not fetch.complete:
        fetch.add(content[fetch.position : fetch.position + 30_000])
    outcome = []
    fetch.place(outcome.append)
    node.settle()
    assert outcome == [None]
    assert load(node).header == header()
    node.lose_power()
    node.start()
    assert load(node).header == header()


def add_all(fetch, content):
    for at in range(0, len(content) + 100, 100):
        fetch.add(content[at : at + 100])


def test_a_corrupt_piece_is_refused_and_never_put_in_place():
    for position in range(0, len(SMALL), 3):
        content = bytearray(SMALL)
        content[position] ^= 8
        node = Node()
        fetch = CheckpointFetch(node.disk, CLUSTER, CheckpointId(1_000, 7))
        list(fetch.prepare())
        with pytest.raises(DamagedCheckpointError):
            add_all(fetch, bytes(content))
        with pytest.raises(CheckpointError):
            fetch.place(lambda _: None)
        fetch.discard()
        assert fetch.position == 0
        while not fetch.complete:
            fetch.add(SMALL[fetch.position : fetch.position + 100])


def test_another_checkpoint_than_the_one_asked_for_is_refused_at_once():
    node = Node()
    fetch = CheckpointFetch(node.disk, CLUSTER, CheckpointId(2_000, 7))
    list(fetch.prepare())
    with pytest.raises(DamagedCheckpointError, match="content of checkpoint"):
        fetch.add(SMALL[:400])


def test_the_trigger_counts_bytes_and_time():
    node = Node()
    trigger = CheckpointTrigger(node.process.clock, every_bytes=100, every_s=50.0)
    node.world.run_for(60)
    assert not trigger.due  # nothing new, no checkpoint
    trigger.accepted(1)
    assert trigger.due
    trigger.begun()
    trigger.accepted(99)
    assert not trigger.due
    trigger.accepted(1)
    assert trigger.due
    trigger.begun()
    assert not trigger.due
    trigger.failed(100)
    assert trigger.due
