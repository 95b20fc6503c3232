"""The demonstration, step by step: each step acts on real processes and checks its claim.

Rule: a step prints its line only after it observed its claim. At the end, the claims about fencing
are checked again from the log. The last step shows the
audit a log with an intruder. The first claim that fails ends the demo, with what was seen instead.
"""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn

from rich.text import Text

from audit.places.replicas import Replica, open_all
from audit.questions.agreement import agree
from audit.questions.state import state_at
from audit.reading.dump import dump
from logberg.cli.output import Piece
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.cluster_view import ClusterView, observe
from logberg.commands.demo_audit import WEEK, find_intruder
from logberg.local.local_cluster import LocalCluster
from metadata.messages.topics import NewTopic

_START_LIMIT_S = 30.0
_STEP_LIMIT_S = 20.0
_POLL_S = 0.02
TOPIC, PARTITIONS = "orders", 12
PAUSED, STOPPED = 2, 3

Line = Sequence[Piece]
"""What a step says, with styles."""
Say = Callable[[Line, float], None]


class ClaimError(Exception):
    """Something that should have held did not."""


class DemoSteps:
    """Runs the steps in the order that `steps` lists."""

    def __init__(self, cluster: LocalCluster, client: LogbergClient, say: Say) -> None:
        self._cluster = cluster
        self._client = client
        self._say = say
        self._killed = 0
        self._before_kill = 0
        self._after_failover = 0
        self._before_stopping = 0
        self.proof = ""

    def steps(self) -> list[Callable[[], Awaitable[str | Line]]]:
        """What happens, in order."""
        return [
            self.controllers_agree,
            self.brokers_come_online,
            self.topic_is_created,
            self.active_controller_is_killed,
            self.brokers_stayed_online,
            self.broker_is_paused_and_fenced,
            self.broker_returns,
            self.broker_stops_cleanly,
            self.killed_controller_catches_up,
            self.everything_stops,
            self.logs_agree,
            self.states_agree,
            self.audit_finds_the_intruder,
        ]

    async def tell(self) -> None:
        """Run all steps. Raises ClaimError, ClientError."""
        for step in self.steps():
            began = time.monotonic()
            line = await step()
            self._say([line] if isinstance(line, str) else line, time.monotonic() - began)

    # The steps.

    async def controllers_agree(self) -> str:
        for child in self._cluster.controllers.values():
            child.start()
        found = await self._until(
            lambda seen: seen.active is not None and seen.all_answer,
            "three controllers answer and one is active",
            _START_LIMIT_S,
        )
        return (
            f"three controllers agree: {found.active} is active, epoch {found.epoch}, "
            f"cluster {found.cluster_id}"
        )

    async def brokers_come_online(self) -> str:
        for child in self._cluster.brokers.values():
            child.start()
        await self._until(
            lambda seen: seen.is_ready(len(self._cluster.brokers)),
            "every broker is online",
            _START_LIMIT_S,
        )
        self._cluster.write_cluster_file()
        return "three brokers registered over HTTP: fenced, caught up, online"

    async def topic_is_created(self) -> str:
        await self._create(TOPIC, PARTITIONS, "the demonstration's first topic")
        leaders = await self._leaders(TOPIC)
        spread = [leaders.count(broker) for broker in sorted(self._cluster.brokers)]
        if max(spread) - min(spread) > 1:
            self._fail(f"leaders are spread {spread}, which is not even")
        return (
            f"topic '{TOPIC}' created: {PARTITIONS} partitions, 3 replicas each, "
            f"leaders spread {'/'.join(map(str, spread))}"
        )

    async def active_controller_is_killed(self) -> Line:
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
        return (
            f"controller {self._killed} killed with SIGKILL; {found.active} took over and ",
            "committed the next change ",
            Text(f"{took_ms:.0f} ms", "bold"),
            " after the kill",
        )

    async def brokers_stayed_online(self) -> str:
        # Long enough for every broker to have found the new controller, or to be fenced.
        until = time.monotonic() + 2 * self._cluster.timing.heartbeat_ms / 1000 + 0.5
        while time.monotonic() < until:
            found = await observe(self._client, self._cluster.controller_urls)
            states = {broker.broker_id: broker.state.value for broker in found.brokers}
            if states and set(states.values()) != {"online"}:
                self._fail(f"a broker did not stay online: {states}")
            await asyncio.sleep(_POLL_S)
        self._after_failover = _log_end(found)
        return "every broker stayed online through it, and follows the new controller"

    async def broker_is_paused_and_fenced(self) -> str:
        self._cluster.brokers[PAUSED].signal(signal.SIGSTOP)
        led = (await self._leaders(TOPIC)).count(PAUSED)
        await self._until(
            lambda seen: seen.state_of(PAUSED) in {"fenced", "offline"},
            "the paused broker is fenced",
        )
        leaders = await self._leaders(TOPIC)
        if PAUSED in leaders or -1 in leaders:
            self._fail(f"partitions did not get new leaders: {leaders}")
        return (
            f"broker {PAUSED} paused: silent for a session, it was fenced; "
            f"its {led} partitions have new leaders"
        )

    async def broker_returns(self) -> str:
        self._cluster.brokers[PAUSED].signal(signal.SIGCONT)
        await self._until(lambda seen: seen.state_of(PAUSED) == "online", "the broker returns")
        return f"broker {PAUSED} goes on: it had fenced itself, caught up, and is online again"

    async def broker_stops_cleanly(self) -> str:
        child = self._cluster.brokers[STOPPED]
        child.signal(signal.SIGTERM)
        if not await asyncio.to_thread(child.wait, _STEP_LIMIT_S):
            self._fail(f"broker {STOPPED} did not stop within {_STEP_LIMIT_S:.0f} s")
        if child.exit_code != 0:
            self._fail(f"broker {STOPPED} stopped with exit code {child.exit_code}")
        leaders = await self._leaders(TOPIC)
        if STOPPED in leaders or -1 in leaders:
            self._fail(f"leaders were not moved before the broker stopped: {leaders}")
        return f"broker {STOPPED} stopped cleanly: leaders moved first, everyone knew, then it went"

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
        self._check_fencings(replicas[0])
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

    async def audit_finds_the_intruder(self) -> Line:
        found = await asyncio.to_thread(find_intruder, self._cluster.folder / WEEK)
        if found is None or not found.right:
            self._fail(f"the audit's first finding is not the intruder, but {found}")
        return [
            f"a made-up week, {found.records} records: the audit names its intruder first: ",
            Text(found.finding.severity.word.upper(), "bold red"),
            f" {found.finding.sentence}",
        ]

    # What the steps use.

    def _check_fencings(self, replica: Replica) -> None:
        """Read from the log itself: the failover fenced nobody, the pause exactly one."""
        fenced = [
            (record["offset"], record["data"]["brokerId"])
            for batch in dump(replica.reader())
            for record in batch["records"]
            if record["type"] == "BROKER_REGISTRATION_CHANGE_RECORD" and _is_fencing(record)
        ]
        by_failover = [b for at, b in fenced if self._before_kill <= at < self._after_failover]
        if by_failover:
            self._fail(f"the failover fenced brokers {by_failover}")
        # Brokers that stop at the end are fenced as they go; that is no fault.
        paused = [at for at, b in fenced if b == PAUSED and at < self._before_stopping]
        if len(paused) != 1:
            self._fail(f"broker {PAUSED} should have been fenced once; the log says {fenced}")

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

    async def _until(
        self,
        holds: Callable[[ClusterView], bool],
        claim: str,
        limit_s: float = _STEP_LIMIT_S,
    ) -> ClusterView:
        until = time.monotonic() + limit_s
        while True:
            found = await observe(self._client, self._cluster.controller_urls)
            if holds(found):
                return found
            if time.monotonic() > until:
                self._fail(f"not within {limit_s:.0f} s: {claim}. Seen last: {_brief(found)}")
            self._cluster.check_alive()
            await asyncio.sleep(_POLL_S)

    def _fail(self, what: str) -> NoReturn:
        raise ClaimError(what)


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
