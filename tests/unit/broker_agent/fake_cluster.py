"""A real log, and controllers whose answers a test writes.

`Log` seals batches and keeps the image, as a controller's ledger and image would. `Controllers` is
a `Requester`: each request waits until the test answers it, or until its deadline; `obliging`
answers it as an active controller would.
"""

import random
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from ledger.batch import Batch, BatchHeader, Provenance, seal
from ledger.chain import LogMark
from metadata.codec import decode_records, encode_record, encode_records
from metadata.errors import ErrorCode, LogbergError
from metadata.image import EMPTY, MetadataDelta, image_to_records
from metadata.messages.errors import error_reply
from metadata.messages.fetch import (
    Divergence,
    MetadataFetchReply,
    MetadataFetchRequest,
    SeenState,
    SnapshotToLoad,
    StateAt,
    WantedState,
)
from metadata.messages.wire import MSGPACK, decode, encode
from metadata.records import (
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
)
from metadata.uuids import parse_uuid
from runtime.http.requests import Reply, Request, Unreachable
from snapshots.checkpoint import (
    CheckpointHeader,
    CheckpointId,
    Footer,
    encode_blocks,
    encode_footer,
    encode_header,
)

CLUSTER_ID = "a-cluster-for-agents"
BROKER = 7
ONE, TWO, THREE = "http://one", "http://two", "http://three"
FENCE, UNFENCE = 1, -1
LATENCY_S = 0.0005


def topic_id(number: int) -> bytes:
    return bytes(15) + bytes((number,))


def partition(
    topic: int, number: int, replicas, leader: int, leader_epoch: int = 0, partition_epoch: int = 0
) -> PartitionRecord:
    return PartitionRecord(
        number,
        topic_id(topic),
        tuple(replicas),
        tuple(replicas),
        (),
        (),
        leader,
        leader_epoch,
        partition_epoch,
    )


def topic(number: int) -> TopicRecord:
    return TopicRecord(f"topic-{number}", topic_id(number))


class Log:
    """A committed log with its image."""

    def __init__(self, cluster_id: str = CLUSTER_ID) -> None:
        self.cluster_id = cluster_id
        self.batches: list[Batch] = []
        self.mark = LogMark.beginning(cluster_id)
        self.image = EMPTY
        self.epoch = 1
        self.states: dict[int, StateAt] = {}

    @property
    def end(self) -> int:
        return self.mark.log_end

    def append(self, *records: Record) -> Batch:
        return self.take(sealed(self.mark, self.epoch, *records))

    def take(self, batch: Batch) -> Batch:
        """Append a batch that was made elsewhere."""
        records = decode_records(batch.records)
        self.mark = self.mark.after(batch)
        delta = MetadataDelta(self.image, keep_outcomes=False)
        delta.replay_all(records, batch.header.base_offset)
        delta.finish_batch(batch.header.end_offset, self.epoch, batch.header.timestamp_ms)
        self.image = delta.apply()
        self.batches.append(batch)
        if self.image.transaction is None:
            self.states[self.end] = StateAt(
                offset=self.end,
                chain_hash=self.mark.head,
                state_hash=self.image.state_hash.shared_bytes(),
            )
        return batch

    def fill(self, count: int = 3) -> None:
        for _ in range(count):
            self.append(NoOpRecord())

    def from_offset(self, offset: int) -> tuple[bytes, ...]:
        return tuple(b.encoded for b in self.batches if b.header.base_offset >= offset)

    def state_at(self, offset: int) -> StateAt | None:
        known = [end for end in self.states if end <= offset]
        return self.states[max(known)] if known else None

    def snapshot(self) -> tuple[SnapshotToLoad, bytes]:
        """A checkpoint of the image as it stands, as its file would be."""
        return snapshot_of(self, self.image.state_hash.shared_bytes())


def snapshot_of(log: Log, shared_hash: bytes) -> tuple[SnapshotToLoad, bytes]:
    header = CheckpointHeader(
        cluster_id=log.cluster_id,
        offset=log.end,
        epoch=log.mark.epoch,
        timestamp_ms=log.mark.timestamp_ms,
        chain_hash=log.mark.head,
        state_hash=shared_hash + bytes(32),
    )
    data = encode_header(header)
    blocks = count = 0
    for records, block in encode_blocks(map(encode_record, image_to_records(log.image))):
        data += block
        blocks += 1
        count += records
    data += encode_footer(Footer(blocks, count, sha256(data).digest()))
    return SnapshotToLoad(id=str(CheckpointId(log.end, log.mark.epoch)), size=len(data)), data


def sealed(mark: LogMark, epoch: int, *records: Record) -> Batch:
    header = BatchHeader(
        mark.log_end,
        len(records),
        epoch,
        max(mark.timestamp_ms, 1_000 + mark.log_end),
        Provenance(principal="Controller:1", operation="Test"),
        mark.head,
    )
    return seal(header, encode_records(records))


class Asked:
    """One request on its way."""

    def __init__(self, controllers: Any, url: str, request: Request, on_reply) -> None:
        self.url = url
        self.request = request
        self.at = controllers.clock.monotonic()
        self.settled = False
        self.abandoned = False
        self._controllers = controllers
        self._on_reply = on_reply
        self.timer = None
        self.deadline_s = 0.0

    @property
    def is_fetch(self) -> bool:
        return self.request.path == "/v1/metadata/fetch"

    @property
    def fetch(self) -> MetadataFetchRequest:
        return decode(MetadataFetchRequest, self.request.body, MSGPACK)

    @property
    def fields(self) -> dict[str, object]:
        """The body as it came."""
        fields: dict[str, object] = msgspec.msgpack.decode(self.request.body)
        return fields

    def abandon(self) -> None:
        self.abandoned = True
        self._finish()

    def give(self, answer: Reply | Unreachable, after_s: float = LATENCY_S) -> None:
        """Let an answer arrive, unless the deadline is there first."""
        self._controllers.clock.call_later(after_s, lambda: self._settle(answer))

    def reply(self, reply: MetadataFetchReply, after_s: float = LATENCY_S) -> None:
        status = 200 if reply.error is None else reply.error.known_code().status
        body = encode(reply, MSGPACK)
        said = getattr(self._controllers, "said_of_versions", {})
        self.give(Reply(status, body, {"content-type": MSGPACK, **said}), after_s)

    def refuse(
        self, code: ErrorCode, message: str = "no", after_s: float = LATENCY_S, **leader
    ) -> None:
        error = error_reply(LogbergError(code, message), **leader)
        self.reply(MetadataFetchReply(error=error, leader_epoch=error.leader_epoch), after_s)

    def force(self, answer: Reply) -> None:
        """Call back although it was given up: a requester that breaks its promise."""
        self._on_reply(answer)

    def _settle(self, answer: Reply | Unreachable) -> None:
        if not self.settled:
            self._finish()
            self._controllers.on_settled(self, answer)
            self._on_reply(answer)

    def _finish(self) -> None:
        self.settled = True
        if self.timer is not None:
            self.timer.cancel()
        if self in self._controllers.waiting:
            self._controllers.waiting.remove(self)


class Controllers:
    """What the agent sends arrives here."""

    def __init__(self, clock) -> None:
        self.clock = clock
        self.asked: list[Asked] = []
        self.waiting: list[Asked] = []
        self.said_of_versions: dict[str, str] = {}
        """Headers of every answer: none from release 0.1."""
        self.on_ask: Callable[[Asked], None] = lambda asked: None
        self.on_settled: Callable[[Asked, object], None] = lambda asked, answer: None

    def request(self, target: str, request: Request, on_reply, deadline_s: float) -> Asked:
        asked = Asked(self, target, request, on_reply)
        asked.deadline_s = deadline_s
        late = Unreachable(f"no answer within {deadline_s:g} s")
        asked.timer = self.clock.call_later(deadline_s, lambda: asked._settle(late))
        self.asked.append(asked)
        self.waiting.append(asked)
        self.clock.call_soon(lambda: None if asked.settled else self.on_ask(asked))
        return asked

    @property
    def fetches(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.is_fetch]

    @property
    def last(self) -> Asked:
        return self.fetches[-1]


class Active:
    """An active controller over a `Log`, with as many rules as the agent can see."""

    def __init__(self, log: Log, controllers: Controllers, url: str = ONE) -> None:
        self.log = log
        self.controllers = controllers
        self.url = url
        self.also: str | None = None
        """A standby that answers heartbeats as the active controller does."""
        self.epoch = 1
        self.session_ms = -1
        self.may_unfence = True
        self.may_stop = False
        self.says: SeenState | None = None
        self.snapshot: tuple[SnapshotToLoad, bytes] | None = None
        self.with_state_hash = True
        self.batches_at_once = 1_000
        self.silent = False
        self.held: list[Asked] = []
        controllers.on_ask = self.on_ask

    # What tests do.

    def commit(self, *records: Record) -> Batch:
        batch = self.log.append(*records)
        self.wake()
        return batch

    def fence(self, broker_id: int = BROKER) -> None:
        broker = self.log.image.cluster.brokers[broker_id]
        self.commit(BrokerRegistrationChangeRecord(broker_id, broker.broker_epoch, fenced=FENCE))

    def wake(self) -> None:
        held, self.held = self.held, []
        for asked in held:
            if not asked.settled:
                asked.reply(self.answer(asked.fetch))

    def _is_new(self) -> bool:
        return bool(getattr(self.controllers, "said_of_versions", None))

    # What the agent asks.

    def on_ask(self, asked: Asked) -> None:
        if self.silent:
            return
        if asked.url not in (self.url, self.also):
            asked.refuse(
                ErrorCode.NOT_CONTROLLER,
                leader_id=1,
                leader_epoch=self.epoch,
                leader_url=self.url,
            )
        elif asked.is_fetch and "software" in asked.fields and not self._is_new():
            # As release 0.1 answers.
            asked.refuse(ErrorCode.INVALID_REQUEST, "object contains unknown field software")
        elif asked.is_fetch:
            self._fetch(asked)
        else:
            self._piece(asked)

    def _fetch(self, asked: Asked) -> None:
        request = asked.fetch
        if request.cluster_id != self.log.cluster_id:
            asked.refuse(ErrorCode.INCONSISTENT_CLUSTER_ID, leader_epoch=self.epoch)
            return
        if request.broker_epoch < 0:
            self._register(request)
            asked.reply(self.answer(request))
            return
        broker = self.log.image.cluster.brokers.get(request.broker_id)
        if broker is None or broker.broker_epoch != request.broker_epoch:
            asked.refuse(ErrorCode.STALE_BROKER_EPOCH, leader_epoch=self.epoch)
            return
        caught_up = request.applied_offset > broker.broker_epoch
        wanted = request.wanted_state
        if broker.fenced:
            if wanted is WantedState.ONLINE and caught_up and self.may_unfence:
                self._change(broker, UNFENCE)
        elif wanted is WantedState.FENCED or (wanted is WantedState.STOPPING and self.may_stop):
            self._change(broker, FENCE)
        reply = self.answer(request)
        if request.max_wait_ms == 0 or reply.batches or reply.snapshot or reply.may_stop:
            asked.reply(reply)
            return
        self.held.append(asked)
        wait_s = request.max_wait_ms / 1000
        self.controllers.clock.call_later(wait_s, lambda: self._release(asked))

    def _release(self, asked: Asked) -> None:
        if asked in self.held:
            self.held.remove(asked)
            if not asked.settled and not self.silent:
                asked.reply(self.answer(asked.fetch))

    def answer(self, request: MetadataFetchRequest) -> MetadataFetchReply:
        broker = self.log.image.cluster.brokers[request.broker_id]
        batches: tuple[bytes, ...] = ()
        snapshot = None
        if self.snapshot is not None and request.fetched_offset < int(self.snapshot[0].id[:20]):
            snapshot = self.snapshot[0]
        else:
            batches = self.log.from_offset(request.fetched_offset)[: self.batches_at_once]
        end = request.fetched_offset
        for batch in self.log.batches:
            if batch.encoded in batches:
                end = batch.header.end_offset
        stopping = request.wanted_state is WantedState.STOPPING
        diverging = None
        if request.fetched_offset > self.log.end:
            diverging = Divergence(epoch=self.log.epoch, end_offset=self.log.end)
        return MetadataFetchReply(
            broker_epoch=broker.broker_epoch,
            state=self.says or (SeenState.FENCED if broker.fenced else SeenState.ONLINE),
            may_stop=stopping and broker.fenced,
            leader_id=1,
            leader_epoch=self.epoch,
            leader_url=self.url,
            high_watermark=self.log.end,
            batches=batches,
            snapshot=snapshot,
            diverging=diverging,
            state_hash=self.log.state_at(end) if self.with_state_hash else None,
            session_timeout_ms=self.session_ms,
        )

    def _register(self, request: MetadataFetchRequest) -> None:
        incarnation = parse_uuid(request.incarnation_id)
        before = self.log.image.cluster.brokers.get(request.broker_id)
        same = before is not None and before.incarnation_id == incarnation
        self.log.append(
            RegisterBrokerRecord(
                request.broker_id,
                incarnation,
                before.broker_epoch if same else self.log.end,
                (),
                (),
                None,
            )
        )

    def _change(self, broker, fenced: int) -> None:
        self.log.append(
            BrokerRegistrationChangeRecord(broker.broker_id, broker.broker_epoch, fenced=fenced)
        )

    def _piece(self, asked: Asked) -> None:
        if self.snapshot is None or self.snapshot[0].id not in asked.request.path:
            asked.give(Reply(404, b"", self.controllers.said_of_versions))
            return
        start, _, end = asked.request.headers["range"].removeprefix("bytes=").partition("-")
        asked.give(Reply(206, self.snapshot[1][int(start) : int(end) + 1]))


def like(reply: MetadataFetchReply, **changes) -> MetadataFetchReply:
    return msgspec.structs.replace(reply, **changes)


def dice(seed: int = 1) -> random.Random:
    return random.Random(seed)
