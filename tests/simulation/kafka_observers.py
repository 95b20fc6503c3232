"""Kafka's brokers as observers of a simulated cluster's log, and the rules that their log keeps.

Each controller gets the handlers of Kafka's raft client, as its listener has them. Observers fetch
by bytes from whoever leads, load snapshots, and lose everything now and then.

Rules (I23, ADR 0071):

- What an offset shows never changes, on no controller and after no restart: neither the bytes that
  observers get nor the digests that controllers keep.
- No high watermark goes back, and nobody who fetched only what was told is told to truncate.
- No controller finds that its projection differs from the others'.
"""

from collections import Counter
from typing import Any, Final

from kafka_listener.asking.refused_brokers import RefusedBrokers
from kafka_listener.asking.request import KafkaFailure, KafkaRequest
from kafka_listener.quorum_requests.handlers import FETCH, FETCH_SNAPSHOT, QuorumRequests
from kafka_listener.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kafka_listener.wire.record_batches import decode_batches
from kafka_listener.wire.schema import Fields
from tests.kafka_quorum import fetch_fields

_US: Final = 1_000_000
_EVERY_US: Final = 50_000
_OBSERVERS: Final = 2
_FIRST_ID: Final = 701
_CODES: Final = {0, 6, 8, 56, 74, 75}


class KafkaObservers:
    """The listeners' part that answers observers, and the observers."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._random = cluster.world.random("kafka-observers")
        self._next_us = 0
        self.requests: dict[int, QuorumRequests] = {}
        self.observers = [Observer(self, _FIRST_ID + n) for n in range(_OBSERVERS)]
        self.bytes_at: dict[int, bytes] = {}
        """What observers got, by base offset."""
        self._digests: dict[int, tuple[bytes, int]] = {}
        """By offset: the first digest that was seen, and on which controller."""
        self.counts: Counter[str] = Counter()

    def follow(
        self, node_id: int, controller: Any, config: Any, clock: Any, disk: Any, log: Any
    ) -> None:
        """Make a controller's handlers, before it starts."""
        self.requests[node_id] = QuorumRequests(
            controller, config, clock, disk, log, RefusedBrokers(log)
        )

    def after_event(self, _process: Any) -> None:
        """Compare, and let an observer fetch, if it is time: a hook of the world."""
        cluster = self._cluster
        now = cluster.world.now_us
        if now < self._next_us:
            return
        self._next_us = now + _EVERY_US
        for node_id in cluster.running():
            if node_id in self.requests:
                self._compare(node_id, self.requests[node_id])
        observer = self._random.choice(self.observers)
        if self._random.random() < 0.01:
            observer.lose_everything()
        running = [n for n in cluster.running() if cluster.hosts[n].process.alive]
        if running:
            observer.fetch(self._random.choice(running))

    def at_the_end(self) -> Counter[str]:
        """Compare all digests that are kept; return what happened."""
        for node_id in self._cluster.running():
            for offset, digest in self.requests[node_id].log.digests.kept().items():
                self._note(node_id, offset, digest)
        return self.counts

    def ask(self, node_id: int, key: int, version: int, fields: Fields) -> Fields | None:
        """Ask a controller by bytes; None: it has not answered at once."""
        sent = decode_request(key, version, encode_request(key, version, fields))
        request = KafkaRequest(key, version, "observer", sent, listener="CONTROLLER")
        answers: list[Any] = []
        handler = self.requests[node_id].handlers()[key]

        def handle() -> None:
            try:
                handler(request, answers.append)
            except KafkaFailure as failure:
                self.fail(f"I23: {failure}", node_id)

        self._cluster.hosts[node_id].process.run(handle)
        if not answers:
            return None
        (answer,) = answers
        return decode_response(key, version, encode_response(key, version, answer))

    def fail(self, what: str, node_id: int) -> None:
        """End the run."""
        self._cluster.world.fail(what, node_id)

    def got(self, node_id: int, base_offset: int, data: bytes) -> None:
        """An observer got a batch."""
        if self.bytes_at.setdefault(base_offset, data) != data:
            self.fail(f"I23: offset {base_offset} shows other bytes than before", node_id)

    def _compare(self, node_id: int, requests: QuorumRequests) -> None:
        newest = requests.log.digests.newest
        if newest is not None:
            self._note(node_id, newest.offset, newest.digest)
        if requests.exchange.verdict:
            self.fail(f"I23: {requests.exchange.verdict}", node_id)

    def _note(self, node_id: int, offset: int, digest: bytes) -> None:
        known, first = self._digests.setdefault(offset, (digest, node_id))
        self.counts["digests compared"] += first != node_id
        if known != digest:
            self.fail(
                f"I23: the digest at offset {offset} is not that of controller {first}", node_id
            )


class Observer:
    """One broker's replica of the log."""

    def __init__(self, observers: KafkaObservers, replica_id: int) -> None:
        self._observers = observers
        self._id = replica_id
        self._epoch = 0
        self._watermark = -1
        self._told_watermark = -1
        self.lose_everything()

    def lose_everything(self) -> None:
        """The disk is new."""
        self._end = self._last_epoch = 0
        self._watermark = -1

    def fetch(self, node_id: int) -> None:
        """Fetch from a controller, whoever leads."""
        fields = fetch_fields(
            self._epoch,
            offset=self._end,
            last_epoch=self._last_epoch,
            cluster=None,
            replica=self._id,
            watermark=self._watermark,
            wait_ms=0,
        )
        answer = self._observers.ask(node_id, FETCH, 18, fields)
        if answer is None:
            return
        partition = answer["Responses"][0]["Partitions"][0]
        code = partition["ErrorCode"]
        if code not in _CODES:
            self._observers.fail(f"I23: a Fetch is answered with {code}", node_id)
        self._epoch = max(self._epoch, partition["CurrentLeader"]["LeaderEpoch"])
        if code:
            return
        if partition["DivergingEpoch"]["EndOffset"] >= 0:
            said = partition["DivergingEpoch"]
            self._observers.fail(
                f"I23: an observer at {self._end} is told to truncate: {said}", node_id
            )
        elif partition["SnapshotId"]["EndOffset"] >= 0:
            self._load(node_id, partition["SnapshotId"])
        else:
            self._take(node_id, partition)

    def _take(self, node_id: int, partition: Fields) -> None:
        counts = self._observers.counts
        watermark = partition["HighWatermark"]
        if watermark >= 0:
            if watermark < self._told_watermark:
                what = f"I23: the high watermark goes from {self._told_watermark} to {watermark}"
                self._observers.fail(what, node_id)
            self._told_watermark = self._watermark = watermark
        for batch in decode_batches(partition["Records"]):
            end = batch.base_offset + len(batch.records)
            if batch.base_offset > self._end or end <= self._end:
                what = f"I23: the batch [{batch.base_offset}, {end}) came at {self._end}"
                self._observers.fail(what, node_id)
            data = partition["Records"][batch.position : batch.position + batch.size]
            self._observers.got(node_id, batch.base_offset, bytes(data))
            self._end, self._last_epoch = end, batch.epoch
            counts["batches"] += 1

    def _load(self, node_id: int, snapshot: Fields) -> None:
        """Load a snapshot, in pieces."""
        data = b""
        while True:
            partition = {
                "Partition": 0,
                "CurrentLeaderEpoch": self._epoch,
                "SnapshotId": {key: snapshot[key] for key in ("EndOffset", "Epoch")},
                "Position": len(data),
            }
            topics = [{"Name": "__cluster_metadata", "Partitions": [partition]}]
            answer = self._observers.ask(
                node_id, FETCH_SNAPSHOT, 1, {"MaxBytes": 10_000, "Topics": topics}
            )
            said = None if answer is None else answer["Topics"][0]["Partitions"][0]
            if said is None or said["ErrorCode"]:
                self._observers.counts["snapshots given up"] += 1
                return
            data += said["UnalignedRecords"]
            if len(data) >= said["Size"]:
                break
        assert list(decode_batches(data))[-1].control, "a snapshot ends with its footer"
        self._end, self._last_epoch = snapshot["EndOffset"], snapshot["Epoch"]
        self._observers.counts["snapshots"] += 1
