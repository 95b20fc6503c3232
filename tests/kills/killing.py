"""Kills leaders: finds the leader, ends it, measures the time, starts it again and waits for it.

Rule: only processes that we started are ended. There are three kinds of turn:

- *kill*: SIGKILL of the leader while the other two are sound. Its figure is the time from the
  signal until a client learns of the next leader's first change.
- *paused*: SIGSTOP for longer than the election timeout, so that another node leads. Then SIGCONT,
  and SIGKILL a moment later, while the old leader finds out. The time counts from the SIGSTOP,
  which the others notice only by silence.
- *second*: a kill, and the next leader is killed too before the first is back. Then there is no
  majority, so the figure is mostly the start of a process. It is counted apart.
"""

import asyncio
import contextlib
import random
import signal
import time
from collections import defaultdict
from typing import NamedTuple

from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.cluster_view import observe
from logberg.local.local_cluster import LocalCluster
from metadata.messages.quorum import QuorumReply
from tests.kills.load import Load, LoadError

_LIMIT_S = 60.0
_LOOK_S = 0.05
_PAUSE_S = (1.0, 2.0)
"""Longer than the election timeout (0.5 s), its jitter and a round of votes."""
PAUSED_EVERY, SECOND_EVERY = 10, 25


class Kill(NamedTuple):
    """One leader's end."""

    kind: str
    epoch: int
    """Its epoch."""
    next_epoch: int
    at_ms: int
    """Wall clock, for comparison with the log's."""
    took_ms: float


class Killer:
    """Ends leaders of a cluster under load."""

    def __init__(self, cluster: LocalCluster, client: LogbergClient, load: Load, seed: int) -> None:
        self._cluster = cluster
        self._client = client
        self._load = load
        self._dice = random.Random(seed)
        self.kills: list[Kill] = []

    def samples(self) -> dict[str, list[float]]:
        """Times to the next commit, by kind."""
        found: defaultdict[str, list[float]] = defaultdict(list)
        for kill in self.kills:
            found[kill.kind].append(round(kill.took_ms, 1))
        return dict(found)

    async def turn(self, number: int) -> None:
        """One turn; at its end all controllers are voters that have caught up."""
        leader, epoch = await self._leader()
        if number % PAUSED_EVERY == PAUSED_EVERY // 2:
            await self._pause(leader, epoch)
        else:
            await self._kill("kill", leader, epoch)
            if number % SECOND_EVERY == SECOND_EVERY // 2:
                await self._second(leader)
        self._cluster.controllers[leader].start()
        await self._caught_up()
        await asyncio.sleep(self._dice.uniform(0.0, 0.5))

    async def _kill(self, kind: str, leader: int, epoch: int) -> None:
        child = self._cluster.controllers[leader]
        # A moment after it told somebody something: what was told must outlive it.
        await self._load.commit_after(epoch - 1)
        at_ms, began = time.time_ns() // 1_000_000, time.monotonic()
        child.signal(signal.SIGKILL)
        await self._time(kind, epoch, at_ms, began)
        child.kill()

    async def _time(self, kind: str, epoch: int, at_ms: int, began: float) -> None:
        async with asyncio.timeout(_LIMIT_S):
            told, next_epoch = await self._load.commit_after(epoch)
        self.kills.append(Kill(kind, epoch, next_epoch, at_ms, (told - began) * 1000))

    async def _pause(self, leader: int, epoch: int) -> None:
        child = self._cluster.controllers[leader]
        await self._load.commit_after(epoch - 1)
        at_ms, began = time.time_ns() // 1_000_000, time.monotonic()
        child.signal(signal.SIGSTOP)
        try:
            await self._time("paused", epoch, at_ms, began)
            left = self._dice.uniform(*_PAUSE_S) - (time.monotonic() - began)
            await asyncio.sleep(max(0.0, left))
        finally:
            child.signal(signal.SIGCONT)
        await asyncio.sleep(self._dice.uniform(0.0, 0.1))
        child.kill()

    async def _second(self, first: int) -> None:
        leader, epoch = await self._leader(but=first)
        self._cluster.controllers[first].start()
        await self._kill("second", leader, epoch)
        self._cluster.controllers[leader].start()

    # -- looking ---------------------------------------------------------------------------------

    async def _leader(self, but: int = 0) -> tuple[int, int]:
        """Wait for an active controller; return it and its epoch."""
        until = time.monotonic() + _LIMIT_S
        while time.monotonic() < until:
            found = await observe(self._client, tuple(self._cluster.controller_urls))
            if found.active not in (None, but):
                assert found.active is not None
                assert found.epoch is not None
                return found.active, found.epoch
            await asyncio.sleep(_LOOK_S)
        raise LoadError(f"nobody leads within {_LIMIT_S:.0f} s: {found}")

    async def _caught_up(self) -> None:
        """Wait until every controller is a voter that holds and has applied what is committed."""
        until = time.monotonic() + _LIMIT_S
        quorum: QuorumReply | None = None
        while time.monotonic() < until:
            self._load.check()
            self._check_processes()
            leader, _ = await self._leader()
            with contextlib.suppress(ClientError):
                url = self._cluster.controller_url(leader)
                same = quorum is not None and quorum.node_id == leader
                before = quorum.commit_index if quorum is not None and same else None
                quorum = await self._client.from_one(url, "/v1/quorum", QuorumReply)
                held = before is not None and _all_hold(
                    quorum, before, len(self._cluster.controllers)
                )
                if held and await self._all_applied(quorum.high_watermark):
                    return
            await asyncio.sleep(_LOOK_S)
        raise LoadError(f"not caught up within {_LIMIT_S:.0f} s: {quorum}")

    async def _all_applied(self, offset: int) -> bool:
        """Whether every controller's image has come to what was committed when we looked last.

        One that is still loading may be elected all the same, and is active once it has applied.
        """
        for _ in range(10):
            found = await observe(self._client, tuple(self._cluster.controller_urls))
            if all(view.log_end >= offset for view in found.controllers):
                return True
            await asyncio.sleep(_LOOK_S)
        return False

    def _check_processes(self) -> None:
        for child in self._cluster.children:
            if child.exit_code is not None:
                raise LoadError(child.obituary())


def _all_hold(quorum: QuorumReply, index: int, voters: int) -> bool:
    """Whether every voter holds what was committed when we looked last."""
    # Of itself a leader says how far its disk is, not what it counts.
    at = {m.node_id: m.match_index for m in quorum.members if m.is_voter}
    at[quorum.node_id] = quorum.durable_index
    holding = [node for node, match in at.items() if match >= index]
    return bool(quorum.role == "leader" and len(holding) == voters)
