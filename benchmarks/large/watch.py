"""What brokers notice while something large is under way: `make large` measures with this.

Rule: heartbeats, registrations and fencings go on before, during and after the operation, at a
fixed pace. A time counts for the operation if it was due meanwhile: its request was sent, or its
session ended.

Each half second a broker registers and comes online. It holds nothing, and is never heard from
again. So its session ends later. The log says for how long it had been silent when it was fenced.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from benchmarks.instruments.figures import percentile
from benchmarks.instruments.http_pipe import NoAnswerError, Pipe
from benchmarks.instruments.simulated_brokers import SimulatedBroker
from benchmarks.lateness.stage import Stage
from ledger.batch import Batch
from metadata.codec import decode_records
from metadata.messages.fetch import WantedState
from metadata.records import BrokerRegistrationChangeRecord, FencingChange

SESSION_S = 10.0
_BEAT_EVERY_S = 0.02
_REGISTER_EVERY_S = 0.5
_GIVEN_UP_S = 30.0
_SILENCE = re.compile(r"not heard from for (\d+\.\d) s")


class Sample(NamedTuple):
    """One answer, or one fencing."""

    at: float
    """When it was due, in `time.time()`."""
    seconds: float


class Waits(NamedTuple):
    """Seconds."""

    beats: list[float]
    registrations: list[float]
    fencings: list[float]

    def beat_ms(self, share: float) -> float:
        """A percentile of the times of heartbeats."""
        return percentile(self.beats, share) * 1000


class Watch:
    """`with watch.running():` heartbeats, registrations and fencings go on."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._beats: list[Sample] = []
        self._registrations: list[Sample] = []
        self._due: dict[int, float] = {}
        """By broker: when its session ends."""
        self.silent: set[int] = set()
        """Places in `stage.brokers` of those that send nothing."""

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Go on until the end of the block."""
        tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._come_and_go())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()

    async def settle(self) -> None:
        """Wait until sessions end at the pace at which brokers register."""
        await asyncio.sleep(SESSION_S + 1.0)

    def waits(self, began: float, ended: float, silent_s: dict[int, float]) -> Waits:
        """Return what was due in a span of time. `silent_s` is from the log (`silences`).

        A broker that is not fenced yet counts with the time since its session ended.
        """
        return Waits(
            [one.seconds for one in self._beats if began <= one.at <= ended],
            [one.seconds for one in self._registrations if began <= one.at <= ended],
            [
                max(0.0, silent_s.get(broker_id, time.time() - due + SESSION_S) - SESSION_S)
                for broker_id, due in self._due.items()
                if began <= due <= ended
            ],
        )

    async def _beat(self) -> None:
        brokers = self._stage.brokers
        under_way: set[asyncio.Task[None]] = set()
        number = 0
        while True:
            await asyncio.sleep(_BEAT_EVERY_S)
            number = (number + 1) % len(brokers.brokers)
            if number not in self.silent:
                task = asyncio.create_task(self._one_beat(number))
                under_way.add(task)
                task.add_done_callback(under_way.discard)

    async def _one_beat(self, number: int) -> None:
        at = time.time()
        with contextlib.suppress(NoAnswerError, RuntimeError, OSError, TimeoutError):
            async with asyncio.timeout(_GIVEN_UP_S):
                await self._stage.brokers.beat(number)
        self._beats.append(Sample(at, time.time() - at))

    async def _come_and_go(self) -> None:
        under_way: set[asyncio.Task[None]] = set()
        while True:
            await asyncio.sleep(_REGISTER_EVERY_S)
            task = asyncio.create_task(self._one_broker(self._stage.fresh_id()))
            under_way.add(task)
            task.add_done_callback(under_way.discard)

    async def _one_broker(self, broker_id: int) -> None:
        broker = SimulatedBroker(broker_id)
        pipe = await Pipe.open(self._stage.controllers.ports[self._stage.leader])
        try:
            at = time.time()
            broker.take(*await pipe.exchange(broker.request(wanted=WantedState.FENCED)))
            self._registrations.append(Sample(at, time.time() - at))
            while broker.state != "online":
                heard = time.time()
                broker.take(*await pipe.exchange(broker.request()))
            self._due[broker_id] = heard + SESSION_S
        finally:
            pipe.close()


def silences(batches: Iterable[Batch]) -> dict[int, float]:
    """Return for how long each broker had been silent when it was fenced, as the leader counted."""
    found: dict[int, float] = {}
    for batch in batches:
        said = _SILENCE.fullmatch(batch.header.provenance.reason)
        for broker_id in fenced_in(batch):
            if said is not None:
                found[broker_id] = float(said[1])
    return found


def fenced_in(batch: Batch) -> list[int]:
    """Return the brokers that a batch fences."""
    return [
        record.broker_id
        for record in decode_records(batch.records)
        if isinstance(record, BrokerRegistrationChangeRecord)
        and record.fenced == FencingChange.FENCE
    ]
