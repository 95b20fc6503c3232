"""A partition that this node leads: takes writes, serves followers, keeps the ISR.

Rule: an entry is committed when every member of the ISR has it, and of an ISR that was asked for
and may hold already. The high watermark is the end of what is committed; it only rises. A follower
is level when its fetch shows all that the leader had at the fetch before (Kafka's rule). It leaves
the ISR when it was not level for `LAG_S`. It comes back when it is level, and has reached the high
watermark and this leader's own part of the log.
"""

import asyncio
import time

import logberg as lb
from examples.replicated_kv.partition_log import Entry, PartitionLog

LAG_S = 2.0
IN_SYNC_MIN = 2
"""Replicas that must be in sync before the leader takes a write."""


class NotNowError(Exception):
    """The request can't be served now; nobody knows whether a write will hold. Try again."""


class Follower:
    """What the leader knows of one follower."""

    def __init__(self, broker_epoch: int) -> None:
        self.broker_epoch = broker_epoch
        self.end = 0
        """Of its log, as its last fetch said."""
        self.level_at = self._fetched_at = time.monotonic()
        """The newest time of which it is known that the follower has all that the leader had."""
        self._leader_end = 0
        """The end of the leader's log at the follower's last fetch."""

    def fetched(self, end: int, leader_end: int) -> None:
        """Note a fetch: the ends of both logs."""
        now = time.monotonic()
        if end >= leader_end:
            self.level_at = now
        elif end >= self._leader_end:
            self.level_at = max(self.level_at, self._fetched_at)
        self.end, self._leader_end, self._fetched_at = end, leader_end, now


class Leading:
    """One partition, for as long as this node leads it in one leader epoch."""

    def __init__(
        self, agent: lb.BrokerAgent, key: lb.PartitionKey, log: PartitionLog, epoch: int
    ) -> None:
        self._agent = agent
        self._key = key
        self._log = log
        self._own_id = agent.health().broker_id
        self.epoch = epoch
        self.began_at = log.end
        """The log's end when this node was elected."""
        self.high_watermark = 0
        self._followers: dict[int, Follower] = {}
        self._since = time.monotonic()
        self._values: dict[str, str] = {}
        """Of the committed entries."""
        self._moved = asyncio.Event()
        self._led = True

    def end(self) -> None:
        """Another node leads, or this one does in a newer epoch."""
        self._led = False
        self._wake()

    async def put(self, key: str, value: str, limit_s: float = 10.0) -> int:
        """Append a write and wait until it is committed; return its offset. Raises NotNowError."""
        state = self._state()
        if len(state.isr) < IN_SYNC_MIN:
            raise NotNowError(f"only {len(state.isr)} replicas are in sync")
        offset = self._log.end
        self._log.append([Entry(self.epoch, key, value)])
        self._wake()
        self.advance()
        async with asyncio.timeout(limit_s):
            while self.high_watermark <= offset:
                await self._next_move()
                self._state()
        if len(self._state().isr) < IN_SYNC_MIN:
            raise NotNowError("the other replicas fell behind while the write waited")
        return offset

    def get(self, key: str) -> str | None:
        """Return the newest committed value. Raises NotNowError."""
        self._state()
        if self.high_watermark < self.began_at:
            raise NotNowError("this leader does not know yet what is committed")
        return self._values.get(key)

    async def fetch(
        self, broker_id: int, broker_epoch: int, end: int, last_epoch: int, wait_s: float
    ) -> tuple[tuple[int, int] | None, list[Entry]]:
        """Answer a follower: where its log diverges, or None and the entries behind its end."""
        epoch, epoch_end = self._log.end_of(last_epoch)
        if epoch < last_epoch or epoch_end < end:
            return (epoch, epoch_end), []
        follower = self._followers.get(broker_id)
        if follower is None or follower.broker_epoch != broker_epoch:
            follower = self._followers[broker_id] = Follower(broker_epoch)
        follower.fetched(end, self._log.end)
        self.advance()
        self.judge()
        if end == self._log.end and self._led:
            try:
                async with asyncio.timeout(wait_s):
                    await self._next_move()
            except TimeoutError:
                pass
        return None, self._log.entries[end : end + 500]

    def advance(self) -> None:
        """Raise the high watermark to what all members hold."""
        state = self._agent.isr.of(self._key)
        if state is None or state.leader_epoch != self.epoch:
            return
        ends = [
            self._log.end if member == self._own_id else self._end_of(member)
            for member in state.maximal
        ]
        if min(ends) > self.high_watermark:
            for entry in self._log.entries[self.high_watermark : min(ends)]:
                self._values[entry.key] = entry.value
            self.high_watermark = min(ends)
            self._wake()

    def judge(self) -> None:
        """Ask for another ISR if a member lags, or a follower has caught up."""
        state = self._agent.isr.of(self._key)
        if state is None or not self._led or state.leader_epoch != self.epoch:
            return
        now = time.monotonic()
        wanted = {self._own_id: -1}
        for broker_id in self._agent.image.topics.partitions[self._key].replicas:
            follower = self._followers.get(broker_id)
            level_at = self._since if follower is None else follower.level_at
            stays = now - level_at < LAG_S
            if broker_id not in state.isr:
                committed = max(self.high_watermark, self.began_at)
                stays = stays and follower is not None and follower.end >= committed
            if stays and broker_id != self._own_id:
                wanted[broker_id] = -1 if follower is None else follower.broker_epoch
        if wanted.keys() != set(state.isr):
            self._agent.isr.ask(self._key, wanted)

    def _end_of(self, broker_id: int) -> int:
        follower = self._followers.get(broker_id)
        return 0 if follower is None else follower.end

    def _state(self) -> lb.LedPartition:
        state = self._agent.isr.of(self._key)
        if not (self._led and self._agent.may_serve()) or state is None:
            raise NotNowError("this node does not lead the partition any more")
        if state.leader_epoch != self.epoch:
            raise NotNowError("this node's leadership is changing")
        return state

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def _next_move(self) -> None:
        await self._moved.wait()
