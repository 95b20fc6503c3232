"""Simulated brokers that only send heartbeats; many of them in the benchmark's own process.

They register, report the log's end as applied without reading the log, ask to be online, and send
heartbeats in MessagePack over keep-alive connections. They have no images and no files.
"""

import asyncio
import base64
import secrets
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from benchmarks.instruments.cluster import CLUSTER_ID
from benchmarks.instruments.http_pipe import Load, Pipe, drive, encoded
from metadata.features import OF_KAFKAS_BROKERS, SUPPORTED
from metadata.messages.fetch import (
    Endpoint,
    MetadataFetchReply,
    MetadataFetchRequest,
    Registration,
    SupportedFeature,
    WantedState,
)
from metadata.messages.wire import decode_fetch_reply, encode
from runtime.http.requests import MSGPACK

PATH = "/v1/metadata/fetch"
_DECLARED = tuple(
    SupportedFeature(name=name, min_supported_version=low, max_supported_version=high)
    for name, (low, high) in sorted({**SUPPORTED, **OF_KAFKAS_BROKERS}.items())
)
"""What an agent of this build and a broker of Kafka 4.3 declare."""


class SimulatedBroker:
    """One of them."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.incarnation = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        self.epoch = -1
        self.offset = 0
        self.leader_epoch = -1
        self.state = ""

    def request(self, *, max_wait_ms: int = 0, wanted: WantedState = WantedState.ONLINE) -> bytes:
        """The next request's bytes; a broker that has to register first wants to be fenced."""
        registration = None
        if self.epoch < 0:
            registration = Registration(
                endpoints=(Endpoint(name="X", host="127.0.0.1", port=9092, security_protocol=0),),
                rack=f"rack-{self.broker_id % 3}",
                features=_DECLARED,
            )
        message = MetadataFetchRequest(
            cluster_id=CLUSTER_ID,
            broker_id=self.broker_id,
            incarnation_id=self.incarnation,
            broker_epoch=self.epoch,
            registration=registration,
            fetched_offset=self.offset,
            fetched_epoch=self.leader_epoch,
            applied_offset=self.offset,
            wanted_state=WantedState.FENCED if self.epoch < 0 else wanted,
            max_bytes=0,
            max_wait_ms=max_wait_ms,
        )
        return encoded("POST", PATH, encode(message, MSGPACK), MSGPACK)

    def take(self, status: int, body: bytes) -> MetadataFetchReply:
        """Take an answer: everything below the high watermark counts as fetched."""
        reply = decode_fetch_reply(status, body, MSGPACK)
        if reply.error is not None:
            raise RuntimeError(f"broker {self.broker_id}: {reply.error.code}")
        self.epoch, self.state = reply.broker_epoch, str(reply.state)
        self.offset = max(self.offset, reply.high_watermark)
        self.leader_epoch = reply.leader_epoch
        return reply


class SimulatedBrokers:
    """`async with SimulatedBrokers(port, 100) as brokers:` all online."""

    def __init__(self, port: int, count: int, first_id: int = 1) -> None:
        self._port = port
        self.brokers = [SimulatedBroker(first_id + number) for number in range(count)]
        self.pipes: Sequence[Pipe] = ()
        self._turns: dict[int, asyncio.Lock] = {}
        self._encoded: list[bytes] = []

    async def __aenter__(self) -> Self:
        self.pipes = [await Pipe.open(self._port) for _ in self.brokers]
        for _ in range(100):
            await self.beat_once()
            if all(broker.state == "online" for broker in self.brokers):
                return self
            await asyncio.sleep(0.02)
        raise RuntimeError("the brokers did not come online")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pipe in self.pipes:
            pipe.close()

    async def beat_once(self, count: int | None = None) -> None:
        """One heartbeat of each, or of the first `count`."""
        numbers = range(len(self.brokers) if count is None else count)
        await asyncio.gather(*(self.beat(number) for number in numbers))

    async def follow(self) -> None:
        """Bring all to the log's end, and encode the heartbeat that they repeat from here."""
        await self.beat_once()
        self._encoded = [broker.request() for broker in self.brokers]

    async def heartbeats(self, seconds: float) -> Load:
        """Let each repeat its heartbeat as fast as it is answered."""
        return await drive(self.pipes, seconds, lambda number: self._encoded[number])

    def watch(self, count: int) -> "asyncio.Future[list[float]]":
        """Hold a fetch for the first `count`; the moments (perf_counter) of their answers."""
        return asyncio.gather(*(self._watch(number) for number in range(count)))

    async def _watch(self, number: int) -> float:
        broker, pipe = self.brokers[number], self.pipes[number]
        status, body = await pipe.exchange(broker.request(max_wait_ms=2000))
        at = time.perf_counter()
        broker.take(status, body)
        return at

    async def beat(self, number: int) -> None:
        """One heartbeat of one of them. Raises RuntimeError, NoAnswerError, OSError."""
        # A pipe takes one request at a time: of two, the first would wait for ever.
        async with self._turns.setdefault(number, asyncio.Lock()):
            broker, pipe = self.brokers[number], self.pipes[number]
            if pipe.closed:
                pipe = await Pipe.open(self._port)
                self.pipes = [*self.pipes[:number], pipe, *self.pipes[number + 1 :]]
            try:
                broker.take(*await pipe.exchange(broker.request()))
            except asyncio.CancelledError:
                # Its answer may still come, and must not be taken for the next one's.
                pipe.close()
                raise
