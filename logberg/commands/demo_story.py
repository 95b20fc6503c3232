"""What the demonstrations share: telling step by step, and the steps about controllers and logs.

Rule: a step prints its line only after it observed its claim. The first claim that fails ends the
demo, with what was seen instead.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from audit.places.replicas import Replica, open_all
from audit.questions.agreement import agree
from audit.questions.state import state_at
from audit.reading.dump import dump
from logberg.cli.output import Piece
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.cluster_view import ClusterView, observe
from logberg.local.cluster_file import ClusterFile
from logberg.local.local_cluster import Timing
from metadata.messages.topics import NewTopic

START_LIMIT_S = 30.0
STEP_LIMIT_S = 20.0
POLL_S = 0.02

Line = Sequence[Piece]
"""What a step says, with styles."""
Say = Callable[[Line, float], None]
Step = Callable[[], Awaitable[str | Line]]


class ClaimError(Exception):
    """Something that should have held did not."""


class DemoProcess(Protocol):
    """A controller's process."""

    def start(self) -> None:
        """Start it."""

    def kill(self) -> None:
        """End it by SIGKILL."""


class DemoCluster(Protocol):
    """A cluster in a folder; it is prepared, and nothing runs yet."""

    @property
    def folder(self) -> Path:
        """The folder of everything."""

    @property
    def file(self) -> ClusterFile:
        """What cluster.json says."""

    @property
    def timing(self) -> Timing:
        """Sessions and heartbeats."""

    @property
    def controllers(self) -> Mapping[int, DemoProcess]:
        """The controllers' processes."""

    @property
    def brokers(self) -> Mapping[int, Any]:
        """The brokers, by id."""

    @property
    def controller_urls(self) -> list[str]:
        """URLs of all controllers."""

    def check_alive(self) -> None:
        """Raise LocalClusterError for a process that ended unexpectedly."""

    def write_cluster_file(self) -> None:
        """Write cluster.json with what runs now."""

    def stop(self, limit_s: float = 20.0) -> list[str]:
        """Stop the brokers, then the controllers. Returns the names of the killed."""


class Takeover:
    """What killing the active controller showed."""

    def __init__(self, killed: int, now_active: int, took_ms: float) -> None:
        self.killed = killed
        self.now_active = now_active
        self.took_ms = took_ms
        """From the kill to the answer to the next change."""


class DemoStory:
    """Runs the steps in the order that `steps` lists."""

    def __init__(self, cluster: DemoCluster, client: LogbergClient, say: Say) -> None:
        self._cluster = cluster
        self._client = client
        self._say = say
        self._killed = 0
        self._before_kill = 0
        self._after_failover = 0
        self._before_stopping = 0
        self.proof = ""

    def steps(self) -> list[Step]:
        """What happens, in order."""
        raise NotImplementedError

    async def tell(self) -> None:
        """Run all steps. Raises ClaimError, ClientError, and what a step of its own raises."""
        for step in self.steps():
            began = time.monotonic()
            line = await step()
            self._say([line] if isinstance(line, str) else line, time.monotonic() - began)

    # Steps.

    async def controllers_agree(self) -> str:
        for child in self._cluster.controllers.values():
            child.start()
        found = await self._until(
            lambda seen: seen.active is not None and seen.all_answer,
            "three controllers answer and one is active",
            START_LIMIT_S,
        )
        return (
            f"three controllers agree: {found.active} is active, epoch {found.epoch}, "
            f"cluster {found.cluster_id}"
        )

    async def brokers_stayed_online(self) -> str:
        # Long enough for every broker to have found the new controller, or to be fenced.
        until = time.monotonic() + 2 * self._cluster.timing.heartbeat_ms / 1000 + 0.5
        while time.monotonic() < until:
            found = await observe(self._client, self._cluster.controller_urls)
            states = {broker.broker_id: broker.state.value for broker in found.brokers}
            if states and set(states.values()) != {"online"}:
                self._fail(f"a broker did not stay online: {states}")
            await asyncio.sleep(POLL_S)
        self._after_failover = _log_end(found)
        return "every broker stayed online through it, and follows the new controller"

    async def killed_controller_catches_up(self) -> str:
        self._cluster.controllers[self._killed].start()
        found = await self._until(
            lambda seen: _has_caught_up(seen, self._killed), "the killed controller catches up"
        )
        self._before_stopping = _log_end(found)
        return f"controller {self._killed} restarted and caught up to offset {_log_end(found)}"

    async def everything_stops(self) -> str:
        forced = await asyncio.to_thread(self._cluster.stop)
        if forced:
            self._fail(f"{', '.join(forced)} had to be ended by force")
        return "brokers, then controllers stopped cleanly"

    async def logs_agree(self) -> str:
        replicas = self._replicas()
        found = await asyncio.to_thread(agree, replicas)
        if not found.ok:
            bad = next((log.report.first_bad for log in found.logs if log.report.first_bad), None)
            self._fail(found.problem or str(bad))
        ends = {log.report.log_end for log in found.logs}
        if len(ends) != 1:
            self._fail(f"the logs end at {sorted(ends)}")
        self._check_fencings(_fencings(replicas[0]))
        report = found.logs[0].report
        self.proof = f"3 logs, {report.batches} batches"
        return (
            f"three logs verified: {report.records} records in {report.batches} batches, "
            f"one chain, head {report.head.hex()[:12]}…"
        )

    async def states_agree(self) -> str:
        hashes = {await asyncio.to_thread(_state_hash, each) for each in self._replicas()}
        if len(hashes) != 1:
            self._fail("the replayed states differ")
        self.proof += ", one state hash"
        return f"three logs replayed: one state hash, {hashes.pop().hex()[:12]}…"

    # What the steps use.

    def _check_fencings(self, fenced: Sequence[tuple[int, int]]) -> None:
        """Judge the fencings that the log tells of: offset and broker."""
        raise NotImplementedError

    async def _kill_active(self) -> Takeover:
        """Kill the active controller and make a change at once."""
        found = await observe(self._client, self._cluster.controller_urls)
        assert found.active is not None, "every step before needs an active controller"
        self._killed = found.active
        self._before_kill = _log_end(found)
        child = self._cluster.controllers[self._killed]
        began = time.monotonic()
        child.kill()
        await self._create("payments", 3, "written while the old controller lies dead")
        took_ms = (time.monotonic() - began) * 1000
        found = await self._until(
            lambda seen: seen.active not in {None, self._killed}, "another controller is active"
        )
        assert found.active is not None
        return Takeover(self._killed, found.active, took_ms)

    def _replicas(self) -> list[Replica]:
        return open_all([str(self._cluster.folder)])

    async def _create(self, name: str, partitions: int, reason: str) -> None:
        reply = await self._client.create_topics(NewTopic(name, partitions, 3), reason=reason)
        error = reply.topics[0].error
        if error is not None:
            self._fail(f"topic {name} was refused: {error.message}")

    async def _leaders(self, topic: str) -> list[int]:
        reply = await self._client.topic(topic)
        return [partition.leader for partition in reply.topics[0].partitions]

    def _spread(self, leaders: Sequence[int]) -> str:
        """Return how many partitions each broker leads, such as 4/4/4; that must be even."""
        spread = [leaders.count(broker) for broker in sorted(self._cluster.brokers)]
        if max(spread) - min(spread) > 1:
            self._fail(f"leaders are spread {spread}, which is not even")
        return "/".join(map(str, spread))

    async def _until(
        self,
        holds: Callable[[ClusterView], bool],
        claim: str,
        limit_s: float = STEP_LIMIT_S,
    ) -> ClusterView:
        until = time.monotonic() + limit_s
        while True:
            found = await observe(self._client, self._cluster.controller_urls)
            if holds(found):
                return found
            if time.monotonic() > until:
                self._fail(f"not within {limit_s:.0f} s: {claim}. Seen last: {_brief(found)}")
            self._cluster.check_alive()
            await asyncio.sleep(POLL_S)

    def _fail(self, what: str) -> NoReturn:
        raise ClaimError(what)


def _fencings(replica: Replica) -> list[tuple[int, int]]:
    return [
        (record["offset"], record["data"]["brokerId"])
        for batch in dump(replica.reader())
        for record in batch["records"]
        if record["type"] == "BROKER_REGISTRATION_CHANGE_RECORD" and _is_fencing(record)
    ]


def _state_hash(replica: Replica) -> bytes:
    end = replica.reader().log_end
    return state_at(replica, end, snapshots=False).state_hash.shared_bytes()


def _is_fencing(record: dict[str, Any]) -> bool:
    return bool(record["data"].get("fenced") == "FENCE")


def _log_end(found: ClusterView) -> int:
    return max(view.log_end for view in found.controllers)


def _has_caught_up(found: ClusterView, node_id: int) -> bool:
    own = next((view for view in found.controllers if view.node_id == node_id), None)
    return own is not None and found.active is not None and own.log_end == _log_end(found)


def _brief(found: ClusterView) -> str:
    controllers = {view.name: view.role for view in found.controllers}
    brokers = {broker.broker_id: broker.state.value for broker in found.brokers}
    return f"controllers {controllers}, brokers {brokers}"


EXPECTED_ERRORS = (ClaimError, ClientError)
