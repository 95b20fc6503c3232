"""Answers Fetch of the metadata log by observers (KIP-595, 630, 853, 1166).

The order of the checks is Kafka's:

1. the cluster, and whether the caller may read the log;
2. the epoch: a replica in an older one is fenced, and learns from the answer who leads;
3. where its log ends: before our start it gets a snapshot's id; with an epoch that we don't have
   there, the place where the logs diverge. A new leader says that only once the begin of its epoch
   is committed, because only then it has all that an earlier one may have shown.

Then it gets whole batches, at least one if there is one. If there is none, the request is held
until there is, until the leader changes, or until its time is over. Before the begin of our epoch
is committed and projected we say no high watermark: an earlier leader may have told a higher one
than we show.
"""

from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.refused_brokers import RefusedBrokers, id_of_a_controller
from kafka_listener.asking.request import Answer, KafkaFailure, KafkaRequest
from kafka_listener.projection.projected_log import ProjectedLog
from kafka_listener.projection.projected_snapshots import ProjectedSnapshots
from kafka_listener.quorum_requests.leader_view import TOPIC_ID, LeaderView, QuorumSource
from kafka_listener.quorum_requests.observers import Observers, ReplicaKey
from kafka_listener.quorum_requests.unregistered import UnregisteredBrokers
from kafka_listener.wire.schema import Fields
from ledger.errors import LedgerError
from runtime.clock import Clock, Timer
from runtime.loop.slices import SlicedWork

_HELD_MAX: Final = 1_000
"""The most requests that are held. Further ones are answered at once."""
_WAIT_MAX_S: Final = 10.0
_BYTES_MAX: Final = 1024 * 1024
"""The most records in one answer, but for a longer batch, as with MetadataFetch. Kafka's brokers
ask for 8 MiB, and take what comes: they ask again at once."""
_UNKNOWN: Final = -1
"""A high watermark that is not known."""


class _Asked(NamedTuple):
    """What is read of a request."""

    request: KafkaRequest
    answer: Answer
    partition: Fields
    max_bytes: int

    @property
    def offset(self) -> int:
        offset: int = self.partition["FetchOffset"]
        return offset

    @property
    def last_epoch(self) -> int:
        epoch: int = self.partition["LastFetchedEpoch"]
        return epoch


class FetchRequests:
    """Answers Fetch, on one controller."""

    def __init__(
        self,
        source: QuorumSource,
        clock: Clock,
        view: LeaderView,
        projected: ProjectedLog,
        snapshots: ProjectedSnapshots,
        observers: Observers,
        trusted: Callable[[], bool],
        refused: RefusedBrokers,
        log: FilteringBoundLogger,
    ) -> None:
        """`trusted` returns False while the projected log may differ from the others'."""
        self._source = source
        self._clock = clock
        self._view = view
        self._projected = projected
        self._snapshots = snapshots
        self._observers = observers
        self._trusted = trusted
        self._log = log
        self._refused = refused
        self._unregistered = UnregisteredBrokers(log)
        self._held: dict[_Held, None] = {}
        self._shown_epoch = -1
        """The newest epoch in which a high watermark was told."""
        self._reading: set[SlicedWork] = set()
        self._woken = False
        """`wake` was called since those that are held were looked at."""
        self._looking: SlicedWork | None = None

    def handle(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer one request, exactly once, now or later."""
        fields = request.fields
        replica = fields["ReplicaState"]["ReplicaId"]
        if self._view.wrong_cluster(fields["ClusterId"]):
            self._refused.tell(
                replica,
                f"the broker's folder was formatted for cluster id {fields['ClusterId']}, and this "
                f"is cluster {self._view.cluster_id}; point the broker at its own controllers, or "
                "format an empty folder for this cluster",
            )
            answer(_top_level(KafkaCode.INCONSISTENT_CLUSTER_ID))
            return
        partition = _partition_of(fields)
        if not self._view.may_read_log(request.caller):
            raise KafkaFailure(
                KafkaCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{request.caller.principal} may not read the metadata log",
            )
        # Kafka's raft client sets only MaxBytes; PartitionMaxBytes is 0 then, which is no limit.
        most = min(fields["MaxBytes"], partition["PartitionMaxBytes"] or _BYTES_MAX, _BYTES_MAX)
        asked = _Asked(request, answer, partition, max(most, 1))
        if replica in self._source.image.cluster.controllers:
            # Kafka's broker ends at once if the answer says that it leads itself.
            self._refused.tell(replica, id_of_a_controller(replica))
        if self._view.objection(partition["CurrentLeaderEpoch"]) is KafkaCode.NONE:
            self._note(asked)
        if not self._answer_now(asked):
            self._hold(asked)

    def wake(self) -> None:
        """More is projected, a snapshot is ready, or the leader has changed: look again."""
        self._woken = True
        if self._looking is None:
            self._looking = SlicedWork(self._clock, self._look_again(), lambda: None)
            self._looking.begin(at_once=True)

    def _look_again(self) -> Generator[None, None, None]:
        """Answer those that are held and have something to hear. Many brokers may wait."""
        try:
            while self._woken:
                self._woken = False
                for held in list(self._held):
                    if held in self._held and self._answer_now(held.asked):
                        self._let_go(held)
                    yield
        finally:
            self._looking = None

    def stop(self) -> None:
        """Answer what is held, and hold nothing more."""
        for held in list(self._held):
            self._let_go(held)
            self._answer_empty(held.asked, KafkaCode.BROKER_NOT_AVAILABLE)

    # -- what there is to say -----------------------------------------------------------------

    def _answer_now(self, asked: _Asked) -> bool:
        """Answer if there is anything to say; False: there is nothing yet."""
        objection = self._view.objection(asked.partition["CurrentLeaderEpoch"])
        if objection is not KafkaCode.NONE:
            self._answer_empty(asked, objection)
            return True
        if not self._trusted():
            self._answer_empty(asked, KafkaCode.KAFKA_STORAGE_ERROR)
            return True
        if asked.offset < 0:
            self._answer_empty(asked, KafkaCode.OFFSET_OUT_OF_RANGE)
            return True
        if self._source.ledger is None:
            return False
        elsewhere = self._elsewhere(asked)
        if elsewhere is not None:
            if elsewhere:
                self._answer_partition(asked, elsewhere)
            return bool(elsewhere)
        if asked.offset < self._projected.end:
            self._read(asked)
            return True
        if self._high_watermark() > asked.partition["HighWatermark"]:
            self._answer_empty(asked, KafkaCode.NONE)
            return True
        return False

    def _elsewhere(self, asked: _Asked) -> Fields | None:
        """Return what else than records it must be told; None: nothing; empty: not yet."""
        ledger = self._source.ledger
        assert ledger is not None
        start, offset, epoch = self._projected.start, asked.offset, asked.last_epoch
        if offset == 0 == start:
            return None
        behind = offset < start or (offset == start and epoch != self._projected.start_epoch)
        if behind or (start > 0 and epoch < self._projected.start_epoch):
            found = self._snapshots.offer(start)
            if found is None:
                return {}
            return {"SnapshotId": {"EndOffset": found.offset, "Epoch": found.epoch}}
        known = ledger.end_offset_for_epoch(epoch)
        ours, end = (0, 0) if known is None else known
        if ours == epoch and end >= offset:
            return None
        if not self._source.active:
            # An earlier leader may have shown more than we have applied. Kafka's brokers end their
            # process if they are to cut off what is committed.
            return {}
        return {"DivergingEpoch": {"Epoch": ours, "EndOffset": min(end, offset)}}

    def _high_watermark(self) -> int:
        """Return the projected end, once it is not below what an earlier leader told."""
        if not self._source.active:
            return _UNKNOWN
        if self._shown_epoch != self._view.epoch:
            # After a restart the projection may lie far behind the log for seconds.
            if not self._projected.is_whole:
                return _UNKNOWN
            self._shown_epoch = self._view.epoch
        return self._projected.end

    def _read(self, asked: _Asked) -> None:
        work = SlicedWork(self._clock, self._records(asked), lambda: self._reading.discard(work))
        self._reading.add(work)
        work.begin(at_once=True)

    def _records(self, asked: _Asked) -> Generator[None, None, None]:
        """Read, and answer with what was found."""
        try:
            batches = yield from self._projected.read(asked.offset, asked.max_bytes)
        except (LedgerError, OSError) as error:
            self._log.error("kafka_fetch_failed", offset=asked.offset, reason=str(error))
            self._answer_empty(asked, KafkaCode.KAFKA_STORAGE_ERROR)
            return
        objection = self._view.objection(asked.partition["CurrentLeaderEpoch"])
        data = b"" if objection is not KafkaCode.NONE else b"".join(b.data for b in batches)
        self._answer_partition(asked, {"ErrorCode": objection, "Records": data})

    def _note(self, asked: _Asked) -> None:
        request = asked.request
        replica = request.fields["ReplicaState"]["ReplicaId"]
        key = ReplicaKey(replica, asked.partition["ReplicaDirectoryId"])
        if replica >= 0:
            now_ms = self._clock.wall_ms()
            self._observers.note(key, asked.offset, self._projected.end, now_ms)
            brokers = self._source.image.cluster.brokers
            self._unregistered.fetched(replica, request.listener, brokers, now_ms)

    # -- holding and answering ------------------------------------------------------------------

    def _hold(self, asked: _Asked) -> None:
        wait_s = min(asked.request.fields["MaxWaitMs"] / 1000, _WAIT_MAX_S)
        if wait_s <= 0 or len(self._held) >= _HELD_MAX:
            self._answer_empty(asked, KafkaCode.NONE)
            return
        held = _Held(asked)
        self._held[held] = None
        held.timer = self._clock.call_later(wait_s, lambda: self._time_over(held))

    def _time_over(self, held: "_Held") -> None:
        if held in self._held:
            del self._held[held]
            self._answer_empty(held.asked, KafkaCode.NONE)

    def _let_go(self, held: "_Held") -> None:
        self._held.pop(held, None)
        if held.timer is not None:
            held.timer.cancel()

    def _answer_empty(self, asked: _Asked, code: KafkaCode) -> None:
        self._answer_partition(asked, {"ErrorCode": code})

    def _answer_partition(self, asked: _Asked, said: Fields) -> None:
        watermark = self._high_watermark() if self._view.leads else _UNKNOWN
        partition: dict[str, Any] = {
            "PartitionIndex": 0,
            "ErrorCode": KafkaCode.NONE,
            "HighWatermark": watermark,
            "LogStartOffset": self._projected.start if self._view.leads else _UNKNOWN,
            "CurrentLeader": self._view.current_leader(),
            "Records": b"",
        }
        asked.answer(
            {
                "Responses": [{"TopicId": TOPIC_ID, "Partitions": [{**partition, **said}]}],
                "NodeEndpoints": self._view.node_endpoints(asked.request.listener),
            }
        )


class _Held:
    """A request that waits."""

    def __init__(self, asked: _Asked) -> None:
        self.asked = asked
        self.timer: Timer | None = None


def _partition_of(fields: Fields) -> Fields:
    """Return the one partition that may be asked for. Raises KafkaFailure."""
    topics = fields["Topics"]
    if len(topics) == 1 and len(topics[0]["Partitions"]) == 1:
        if topics[0]["TopicId"] != TOPIC_ID:
            raise KafkaFailure(KafkaCode.UNKNOWN_TOPIC_ID, "controllers hold the metadata log only")
        partition: Fields = topics[0]["Partitions"][0]
        if partition["Partition"] == 0:
            return partition
    raise KafkaFailure(KafkaCode.INVALID_REQUEST, "fetch partition 0 of __cluster_metadata")


def _top_level(code: KafkaCode) -> Fields:
    return {"ErrorCode": code, "Responses": []}
