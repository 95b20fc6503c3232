"""Mutants of replay: the same log must give the same state everywhere, and the right one."""

import time
from collections.abc import Callable
from typing import Any
from zlib import crc32

import msgspec

from metadata.records import NO_LEADER_CHANGE
from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, around, edited, gives, instead


def _same_incarnation_is_new(register: Callable[..., Any], self: Any, record: Any, at: int) -> None:
    self.brokers.remove(record.broker_id)
    register(self, record, at)


def _same_leader_is_no_change(change: Callable[..., Any], self: Any, record: Any, at: int) -> None:
    now = self.partitions.get((record.topic_id, record.partition_id))
    if now is not None and now.leader == record.leader:
        record = msgspec.structs.replace(record, leader=NO_LEADER_CHANGE)
    change(self, record, at)


def _evict_a_millisecond_late(evict: Callable[..., Any], self: Any, timestamp_ms: int) -> None:
    evict(self, timestamp_ms - 1)


def _evict_by_the_clock(evict: Callable[..., Any], self: Any, _timestamp_ms: int) -> None:
    evict(self, time.time_ns() // 1_000_000)


def _join_instead(self: Any) -> None:
    self._visible, self._transaction = self._current, None


def _keys_as_they_hash(self: Any) -> Any:
    """In no order that means anything; the same in every process, so that the kill repeats."""
    keys = [key for page in self._pages for bucket in page for key in bucket]
    return iter(sorted(keys, key=lambda key: crc32(repr(key).encode())))


def _in_image(path: str, build: Any) -> tuple[Patch, ...]:
    return (Patch(f"metadata.image.{path}", build),)


_HISTORIES = searched_in("reference")

REPLAYING = (
    Mutant(
        "clock read in replay",
        "12, I13",
        "Outcomes are evicted by the clock of whoever replays.",
        _in_image("outcomes.OutcomesDelta.evict", around(_evict_by_the_clock)),
        _HISTORIES,
    ),
    Mutant(
        "hash-ordered map in a snapshot",
        "12, I13",
        "Records of a checkpoint stand in the order of Python's hashes.",
        (Patch("metadata.buckets.BucketMap.__iter__", instead(_keys_as_they_hash)),),
        searched_in("answers", "lag", "everything"),
    ),
    Mutant(
        "outcomes evicted in another order",
        "5, 12, I13",
        "The newest outcome goes first.",
        _in_image(
            "outcomes.OutcomesDelta.evict",
            edited(("old is not None and old < new", "old is not None and old > new")),
        ),
        _HISTORIES,
    ),
    Mutant(
        "shutdown offset forgotten",
        "3, I13",
        "Where a controlled shutdown began is not noted.",
        _in_image("cluster.ClusterDelta.settle", gives(None)),
        _HISTORIES + searched_in("answers", ""),
    ),
    Mutant(
        "epochs forgotten",
        "12, I13",
        "Where an epoch began is not noted.",
        _in_image("quorum.QuorumDelta.begin", gives(None)),
        _HISTORIES + searched_in("answers", ""),
    ),
    Mutant(
        "amended registration is a new one",
        "3, I13",
        "A broker that amends its registration gets a new epoch and loses its flags.",
        _in_image("cluster.ClusterDelta.register_broker", around(_same_incarnation_is_new)),
        _HISTORIES,
    ),
    Mutant(
        "a stale broker epoch changes a registration",
        "3, I8",
        "A record about an older incarnation changes the newer one's registration.",
        _in_image(
            "cluster.ClusterDelta._known",
            edited(("if broker.broker_epoch != epoch:", "if False:")),
        ),
        _HISTORIES,
    ),
    Mutant(
        "the same leader again is no change",
        "3, I13",
        "A record that names the present leader leaves the leader epoch as it is.",
        _in_image("topics_delta.TopicsDelta.change_partition", around(_same_leader_is_no_change)),
        _HISTORIES,
    ),
    Mutant(
        "partition epoch stands still",
        "3, I13",
        "A change of a partition does not raise its epoch.",
        _in_image(
            "topics_delta.TopicsDelta.change_partition",
            edited(("old.partition_epoch + 1", "old.partition_epoch")),
        ),
        _HISTORIES,
    ),
    Mutant(
        "ELR stays",
        "I13",
        "ClearElr clears nothing.",
        _in_image("topics_delta.TopicsDelta.clear_elr", gives(None)),
        _HISTORIES,
    ),
    Mutant(
        "configs survive their topic",
        "I13",
        "A topic's configs stay when it goes.",
        _in_image("configs.ConfigsDelta.remove_topic", gives(None)),
        _HISTORIES,
    ),
    Mutant(
        "quotas ignored",
        "I13",
        "Client quotas are not replayed.",
        _in_image("client_quotas.ClientQuotasDelta.set_quota", gives(None)),
        _HISTORIES,
    ),
    Mutant(
        "outcomes kept",
        "5, 8, I13",
        "Outcomes are never evicted.",
        _in_image("outcomes.OutcomesDelta.evict", gives(None)),
        _HISTORIES,
    ),
    Mutant(
        "outcomes kept a millisecond",
        "5, I13",
        "Outcomes are evicted a millisecond late.",
        _in_image("outcomes.OutcomesDelta.evict", around(_evict_a_millisecond_late)),
        _HISTORIES,
    ),
    Mutant(
        "outcomes go within a transaction",
        "5, I13",
        "A batch of an open transaction lets outcomes go, on which its end may rest.",
        _in_image(
            "delta.MetadataDelta.finish_batch",
            edited(("if self._transaction is None:", "if True:")),
        ),
        _HISTORIES,
    ),
    Mutant(
        "a dropped transaction is seen",
        "1, I13",
        "What an aborted transaction wrote is published.",
        _in_image("delta.MetadataDelta._drop_transaction", instead(_join_instead)),
        _HISTORIES,
    ),
    Mutant(
        "a new epoch keeps an open transaction",
        "1, I13",
        "BeginEpoch does not discard what an earlier epoch left open.",
        _in_image("delta.MetadataDelta._begin_epoch", edited(("self._drop_transaction()", "pass"))),
        _HISTORIES,
    ),
)
