"""Replay that is wrong in one place: the reference must see each of them.

A comparison that no mistake can make fail would prove nothing.
"""

import msgspec
import pytest

from metadata.codec import encode_records
from metadata.image import EMPTY, MetadataDelta, ReplayError, outcomes
from metadata.image.client_quotas import ClientQuotasDelta
from metadata.image.cluster import ClusterDelta
from metadata.image.configs import ConfigsDelta
from metadata.image.outcomes import OutcomesDelta
from metadata.image.quorum import QuorumDelta
from metadata.image.topics_delta import TopicsDelta
from metadata.records import NO_LEADER_CHANGE, NoOpRecord, RequestOutcomeRecord
from tests.histories import History, HistoryBatch
from tests.reference import folding
from tests.reference.folding import fold_records
from tests.reference.schema import RefusedError, decode_records
from tests.reference.state import State


def _nothing(*_args):
    """What a forgotten line does."""


_register, _change, _evict = (
    ClusterDelta.register_broker,
    TopicsDelta.change_partition,
    OutcomesDelta.evict,
)


def _same_incarnation_is_new(self, record, offset):
    self.brokers.remove(record.broker_id)
    _register(self, record, offset)


def _same_leader_is_no_change(self, record, offset):
    now = self.partitions.get((record.topic_id, record.partition_id))
    if now is not None and now.leader == record.leader:
        record = msgspec.structs.replace(record, leader=NO_LEADER_CHANGE)
    _change(self, record, offset)


def _evict_a_millisecond_late(self, timestamp_ms):
    _evict(self, timestamp_ms - 1)


def _join_instead(self):
    self._visible, self._transaction = self._current, None


MUTANTS = {
    "shutdown offset forgotten": (ClusterDelta, "settle", _nothing),
    "amended registration is a new one": (
        ClusterDelta,
        "register_broker",
        _same_incarnation_is_new,
    ),
    "the same leader again is no change": (
        TopicsDelta,
        "change_partition",
        _same_leader_is_no_change,
    ),
    "ELR stays": (TopicsDelta, "clear_elr", _nothing),
    "configs survive their topic": (ConfigsDelta, "remove_topic", _nothing),
    "quotas ignored": (ClientQuotasDelta, "set_quota", _nothing),
    "outcomes kept": (OutcomesDelta, "evict", _nothing),
    "outcomes kept a millisecond": (OutcomesDelta, "evict", _evict_a_millisecond_late),
    "epochs forgotten": (QuorumDelta, "begin", _nothing),
    "a dropped transaction is seen": (MetadataDelta, "_drop_transaction", _join_instead),
}


DAY_MS = 24 * 60 * 60 * 1000


def to_the_millisecond():
    """An outcome, then a batch just before its day is over, then one at its end."""
    outcome = RequestOutcomeRecord(b"k" * 16, b"d" * 32, b"answer", 1_000)
    times = ((outcome, 1_000), (NoOpRecord(), DAY_MS + 999), (NoOpRecord(), DAY_MS + 1_000))
    return [HistoryBatch(n, 1, time, (record,)) for n, (record, time) in enumerate(times)]


def histories(batches):
    yield to_the_millisecond()
    for seed in range(20):
        yield History(seed).batches(batches)


def product_of(image, batch):
    delta = MetadataDelta(image)
    delta.replay_all(batch.records, batch.base_offset)
    delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
    return delta.apply()


def differs(batches):
    """Whether the two say different things before both refuse to go on."""
    image, state = EMPTY, State()
    for batch in batches:
        refused = []
        try:
            image = product_of(image, batch)
        except ReplayError:
            refused.append("product")
        try:
            records = decode_records(encode_records(batch.records))
            fold_records(state, records, batch.base_offset, batch.epoch, batch.timestamp_ms)
        except RefusedError:
            refused.append("reference")
        if refused:
            return len(refused) == 1
        if state.hash() != image.state_hash.encode():
            return True
    return False


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_in_replay_is_seen(name, monkeypatch):
    where, method, instead = MUTANTS[name]
    monkeypatch.setattr(where, method, instead)
    assert any(differs(batches) for batches in histories(200))


def test_without_a_mistake_nothing_is_seen():
    assert not any(differs(batches) for batches in histories(40))


def test_what_is_too_many_is_too_many_for_both(monkeypatch):
    monkeypatch.setattr(outcomes, "KEPT_KEYS_MAX", 3)
    monkeypatch.setattr(folding, "MOST_OUTCOMES", 3)
    assert not any(differs(batches) for batches in histories(40))
    monkeypatch.setattr(outcomes, "KEPT_BYTES_MAX", 170)
    assert any(differs(batches) for batches in histories(40))
    monkeypatch.setattr(folding, "MOST_OUTCOME_BYTES", 170)
    assert not any(differs(batches) for batches in histories(40))
