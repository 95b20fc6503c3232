"""Properties of images over legal histories: a log gives one state, however batches are split."""

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metadata.bucket_hash import UNKEYED, key_buckets
from metadata.image import (
    EMPTY,
    MetadataDelta,
    MetadataImage,
    ReplayError,
    difference,
    hash_from_scratch,
    image_from_records,
    image_to_records,
    shared_records,
    snapshot,
)
from metadata.image.families import TABLES
from metadata.records import (
    RECORD_CLASSES,
    SNAPSHOT_ONLY,
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    Record,
    ShutdownOffsetRecord,
)
from metadata.state_hash import StateHash, part_of
from tests.histories import History, HistoryBatch

seeds = st.integers(0, 2**32)
few = settings(max_examples=40)


def replay(
    image: MetadataImage, batches: list[HistoryBatch], *, with_state_hash: bool = True
) -> MetadataImage:
    """All batches in one delta."""
    return delta_of(image, batches, with_state_hash=with_state_hash).apply()


def delta_of(
    image: MetadataImage, batches: list[HistoryBatch], *, with_state_hash: bool = True
) -> MetadataDelta:
    delta = MetadataDelta(image, with_state_hash=with_state_hash)
    for batch in batches:
        delta.replay_all(batch.records, batch.base_offset)
        delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
    return delta


def assert_sound(image: MetadataImage) -> None:
    """The hash is what its definition says, and what is derived is what can be derived."""
    assert image.state_hash == hash_from_scratch(image)
    topics = image.topics
    assert dict(topics.by_name.items()) == {t.name: key for key, t in topics.by_id.items()}
    by_broker: dict[int, set[tuple[bytes, int]]] = {}
    leads: dict[int, int] = {}
    numbers: dict[bytes, list[int]] = {}
    for key, partition in topics.partitions.items():
        numbers.setdefault(key[0], []).append(key[1])
        for broker in partition.replicas:
            by_broker.setdefault(broker, set()).add(key)
        if partition.leader >= 0:
            leads[partition.leader] = leads.get(partition.leader, 0) + 1
    assert {b: set(topics.held_by(b)) for b in topics.replicas_by_broker} == by_broker
    assert dict(topics.leader_counts.items()) == leads
    assert {t: list(ids) for t, ids in topics.partition_ids.items()} == numbers
    leaderless = {key for key, partition in topics.partitions.items() if partition.leader == -1}
    assert set(topics.leaderless) == leaderless
    assert set(topics.unpreferred) == {
        key for key, p in topics.partitions.items() if p.leader not in p.replicas[:1]
    }
    assert list(topics.names) == sorted(topic.name for topic in topics.by_id.values())
    assert list(topics.ids) == sorted(topics.by_id)
    assert {b: topics.replicas_on(b) for b in by_broker} == {
        b: len(k) for b, k in by_broker.items()
    }
    alike: dict[str, list[str]] = {}
    for name in topics.names:
        if "." in name or "_" in name:
            alike.setdefault(name.replace(".", "_"), []).append(name)
    assert {s: list(names) for s, names in topics.by_spelling.items()} == alike
    lacks: dict[bytes, list[int]] = {}
    for (topic_id, _), partition in topics.partitions.items():
        counts = lacks.setdefault(topic_id, [0, 0, 0])
        counts[0] += partition.leader == -1
        counts[1] += len(partition.isr) < len(partition.replicas)
        counts[2] += bool(partition.adding or partition.removing)
    assert {t: list(c) for t, c in topics.lacks.items()} == {
        t: counts for t, counts in lacks.items() if counts != [0, 0, 0]
    }
    assert_brokers_sound(image)
    assert list(image.outcomes.order) == list(image.outcomes.by_key)
    assert image.outcomes.size == sum(56 + len(o.answer) for o in image.outcomes.by_key.values())


def assert_brokers_sound(image: MetadataImage) -> None:
    """What is derived from the registrations is what can be derived from them."""
    cluster = image.cluster
    brokers = list(cluster.brokers.values())
    assert list(cluster.ids) == [broker.broker_id for broker in brokers]
    assert list(cluster.fenced) == [broker.broker_id for broker in brokers if broker.fenced]
    assert cluster.stopping == sum(b.in_controlled_shutdown and not b.fenced for b in brokers)
    racks: dict[tuple[bool, str], tuple[list[int], list[int]]] = {}
    owners: dict[bytes, list[int]] = {}
    for broker in brokers:
        for directory in broker.log_dirs:
            owners.setdefault(directory, []).append(broker.broker_id)
        cordoned = broker.log_dirs and set(broker.log_dirs) <= {*(broker.cordoned_log_dirs or ())}
        if not (broker.in_controlled_shutdown or cordoned):
            rack = racks.setdefault((broker.rack is not None, broker.rack or ""), ([], []))
            rack[broker.fenced].append(broker.broker_id)
    assert [(r.name, (list(r.live), list(r.fenced))) for r in cluster.racks] == sorted(
        racks.items()
    )
    assert {d: list(ids) for d, ids in cluster.by_directory.items()} == owners


@few
@given(seeds)
def test_every_split_into_deltas_gives_the_same_image_and_hash(seed: int) -> None:
    """A restart replays in one delta, a standby in one for each batch; both must agree."""
    batches = History(seed).batches(30)
    whole = replay(EMPTY, batches)
    dice = random.Random(seed)
    image, rest = EMPTY, batches
    while rest:
        count = dice.randint(1, 5)
        image, rest = replay(image, rest[:count]), rest[count:]
    assert image == whole
    assert image.state_hash == whole.state_hash
    one_by_one = EMPTY
    for batch in batches:
        one_by_one = replay(one_by_one, [batch])
    assert one_by_one == whole
    assert one_by_one.state_hash == whole.state_hash


@few
@given(seeds)
def test_every_way_to_cut_records_into_batches_gives_the_same_state(seed: int) -> None:
    """Seven records of a living cluster, cut in all 64 ways: only one derived offset may differ.

    That is the offset which a controlled shutdown waits for: the end of the batch that began it.
    """
    history = History(seed)
    before = replay(EMPTY, history.batches(12))
    records: list[Record] = []
    while len(records) < 7:
        records += history.batch().records
    records = [r for r in records if not isinstance(r, BeginEpochRecord)][:7]
    # Where transactions may begin and end, other tests say.
    if before.transaction is not None or any(isinstance(r, TRANSACTION) for r in records):
        return
    whole = cut_at(before, records, ())
    for pattern in range(1, 2 ** (len(records) - 1)):
        cuts = [n for n in range(1, len(records)) if pattern & 1 << (n - 1)]
        image = cut_at(before, records, cuts)
        assert without_shutdowns(image) == without_shutdowns(whole), cuts
        assert image.state_hash == hash_from_scratch(image)
        if shutdowns(image) == shutdowns(whole):
            assert image == whole
            assert image.state_hash == whole.state_hash


TRANSACTION = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


def cut_at(image: MetadataImage, records: list[Record], cuts: Sequence[int]) -> MetadataImage:
    """Replay records on an image, in batches that begin at these places; one delta for all."""
    delta = MetadataDelta(image)
    for first, last in pairwise((0, *cuts, len(records))):
        delta.replay_all(records[first:last], image.offset + first)
        delta.finish_batch(image.offset + last, image.epoch, image.timestamp_ms)
    return delta.apply()


def shutdowns(image: MetadataImage) -> list[Record]:
    return [r for r in image_to_records(image) if isinstance(r, ShutdownOffsetRecord)]


def without_shutdowns(image: MetadataImage) -> list[Record]:
    return [r for r in image_to_records(image) if not isinstance(r, ShutdownOffsetRecord)]


@few
@given(seeds, st.binary(min_size=16, max_size=16))
def test_the_secret_of_the_buckets_shows_nowhere(seed: int, secret: bytes) -> None:
    """Records, orders, hashes and equality are the same in every process."""
    batches = History(seed).batches(30)
    before = replay(EMPTY, batches)
    try:
        key_buckets(secret)
        after = replay(EMPTY, batches)
    finally:
        key_buckets(UNKEYED)
    assert after == before
    assert after.state_hash == before.state_hash
    if before.transaction is None:
        assert list(image_to_records(after)) == list(image_to_records(before))
    for table in TABLES:
        assert list(after.table(table).items()) == list(before.table(table).items())
        changes = difference(EMPTY, after).of(table.name)
        assert changes == difference(EMPTY, before).of(table.name)


@few
@given(seeds)
def test_every_intermediate_image_is_sound(seed: int) -> None:
    """At every offset the hash and the derived maps fit the state."""
    image = EMPTY
    for batch in History(seed).batches(25):
        image = replay(image, [batch])
        assert_sound(image)
        if image.transaction is not None:
            assert_sound(image.transaction.branch)


@few
@given(seeds)
def test_an_image_survives_its_snapshot(seed: int) -> None:
    """A node that loads a checkpoint is in the state of one that replayed the log."""
    history = History(seed)
    batches = history.batches(30)
    last = history.close_transaction()
    image = replay(EMPTY, batches + ([last] if last else []))
    records = list(image_to_records(image))
    loaded = image_from_records(records, image.offset, image.epoch, image.timestamp_ms)
    assert loaded == image
    assert loaded.state_hash == image.state_hash
    assert list(image_to_records(loaded)) == records


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 18])
@few
@given(seed=seeds)
def test_a_load_in_several_deltas_gives_the_same_image(size: int, seed: int) -> None:
    """A large checkpoint is loaded in several deltas. Where one ends decides nothing."""
    history = History(seed)
    batches = history.batches(30)
    last = history.close_transaction()
    image = replay(EMPTY, batches + ([last] if last else []))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "_RECORDS_PER_DELTA", size)
        loaded = image_from_records(
            image_to_records(image), image.offset, image.epoch, image.timestamp_ms
        )
    assert loaded == image
    assert loaded.state_hash == image.state_hash
    assert_sound(loaded)


@few
@given(seeds)
def test_a_loaded_snapshot_goes_on_as_the_log_does(seed: int) -> None:
    """What came before the snapshot leaves nothing behind that later records could feel."""
    history = History(seed)
    batches = history.batches(15)
    last = history.close_transaction()
    image = replay(EMPTY, batches + ([last] if last else []))
    loaded = image_from_records(
        image_to_records(image), image.offset, image.epoch, image.timestamp_ms
    )
    more = history.batches(15)
    assert replay(loaded, more) == replay(image, more)
    assert replay(loaded, more).state_hash == replay(image, more).state_hash


@few
@given(seeds)
def test_changes_are_the_difference_and_lead_from_one_image_to_the_next(seed: int) -> None:
    """Publishers may trust a delta's changes: applied to the old state they give the new."""
    history = History(seed)
    a = replay(EMPTY, history.batches(12))
    delta = delta_of(a, history.batches(6))
    b = delta.apply()
    apart = difference(a, b)
    for table in TABLES:
        changes = delta.changes.of(table.name)
        assert changes == apart.of(table.name), table.name
        state = dict(a.table(table).items())
        for key, before, after in changes:
            assert state.pop(key, None) == before
            if after is not None:
                state[key] = after
        assert state == dict(b.table(table).items())
    assert bool(delta.changes) == (not a.same_state(b) and bool(apart))


@few
@given(seeds)
def test_an_open_transaction_shows_nothing_and_leaves_nothing(seed: int) -> None:
    """Until End readers see the state before; after Abort or a new epoch so it stays."""
    history = History(seed)
    image = EMPTY
    for batch in history.batches(40):
        after = replay(image, [batch])
        opened = None if image.transaction is None else image.transaction.offset
        if opened is not None and after.transaction and after.transaction.offset == opened:
            assert not difference(image, after)
            assert after.state_hash == image.state_hash
            assert changed_by(after, AbortTransactionRecord(), after.epoch) <= EVICTED
            lost = changed_by(after, BeginEpochRecord(1, (), ()), after.epoch + 1)
            assert lost <= {"quorum", "epochs"} | EVICTED
        image = after


EVICTED = {"outcomes", "floors"}


def changed_by(image: MetadataImage, record: Record, epoch: int) -> set[str]:
    """Names the tables that a batch of one record changes; it leaves no transaction open."""
    delta = MetadataDelta(image)
    delta.replay(record, image.offset)
    delta.finish_batch(image.offset + 1, epoch, image.timestamp_ms)
    assert delta.apply().transaction is None
    return {name for name, _ in delta.changes}


@few
@given(seeds)
def test_a_broker_has_the_same_shared_hash_without_outcomes(seed: int) -> None:
    """Brokers drop outcomes and still can compare hashes with controllers."""
    history = History(seed)
    batches = history.batches(20)
    last = history.close_transaction()
    batches += [last] if last else []
    controller = replay(EMPTY, batches)
    broker = MetadataDelta(EMPTY, keep_outcomes=False)
    for batch in batches:
        broker.replay_all(batch.records, batch.base_offset)
        broker.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
    image = broker.apply()
    assert controller.state_hash is not None
    assert image.state_hash == StateHash(controller.state_hash.shared, 0)
    assert len(image.outcomes) == 0
    loaded = image_from_records(
        image_to_records(controller),
        controller.offset,
        controller.epoch,
        controller.timestamp_ms,
        keep_outcomes=False,
    )
    assert loaded == image
    assert part_of(shared_records(image)) % 2**256 == image.state_hash.shared
    assert list(image_to_records(controller, for_brokers=True)) == list(image_to_records(image))


@few
@given(seeds)
def test_an_image_never_changes(seed: int) -> None:
    """A reader may hold an image while others are made from it."""
    history = History(seed)
    image = replay(EMPTY, history.batches(10))
    before = [dict(image.table(table).items()) for table in TABLES]
    replicas = {b: list(image.topics.held_by(b)) for b in range(6)}
    replay(image, history.batches(10))
    assert [dict(image.table(table).items()) for table in TABLES] == before
    assert {b: list(image.topics.held_by(b)) for b in range(6)} == replicas


@few
@given(seeds)
def test_a_hash_can_be_left_out_and_taken_up_again(seed: int) -> None:
    """A raw replay without hash gives the same state, and the hash can be had later."""
    history = History(seed)
    first, second = history.batches(10), history.batches(10)
    plain = replay(EMPTY, first, with_state_hash=False)
    assert plain.state_hash is None
    hashed = replay(EMPTY, first)
    assert plain == hashed
    assert replay(plain, second).state_hash == replay(hashed, second).state_hash


def test_histories_write_every_record_class() -> None:
    """The properties speak of all records only if the histories hold all."""
    written = {type(r) for seed in range(30) for b in History(seed).batches(30) for r in b.records}
    assert written == set(RECORD_CLASSES) - set(SNAPSHOT_ONLY)


def test_a_snapshot_is_refused_while_a_transaction_is_open() -> None:
    """A snapshot stops before an open transaction: it would lose the branch."""
    seed = next(s for s in range(100) if replay(EMPTY, History(s).batches(9)).transaction)
    with pytest.raises(ValueError, match="a transaction is open since offset"):
        image_to_records(replay(EMPTY, History(seed).batches(9)))


def test_a_batch_must_end_before_an_image_is_made() -> None:
    """Half a batch is no state."""
    batch = History(1).batch()
    delta = MetadataDelta(EMPTY)
    delta.replay_all(batch.records, 0)
    with pytest.raises(ReplayError, match="has not ended"):
        delta.apply()
