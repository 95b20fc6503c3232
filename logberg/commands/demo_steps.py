"""The demonstration with our own agents as brokers: each step acts on real processes.

At the end, the claims about fencing are checked again from the log. The last step shows the audit a
log with an intruder.
"""

import asyncio
import signal
from collections.abc import Sequence

from rich.text import Text

from logberg.commands.demo_audit import WEEK, find_intruder
from logberg.commands.demo_story import START_LIMIT_S, STEP_LIMIT_S, DemoStory, Line, Step

TOPIC, PARTITIONS = "orders", 12
PAUSED, STOPPED = 2, 3


class DemoSteps(DemoStory):
    """The story of agents."""

    def steps(self) -> list[Step]:
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

    async def brokers_come_online(self) -> str:
        for child in self._cluster.brokers.values():
            child.start()
        await self._until(
            lambda seen: seen.is_ready(len(self._cluster.brokers)),
            "every broker is online",
            START_LIMIT_S,
        )
        self._cluster.write_cluster_file()
        return "three brokers registered over HTTP: fenced, caught up, online"

    async def topic_is_created(self) -> str:
        await self._create(TOPIC, PARTITIONS, "the demonstration's first topic")
        spread = self._spread(await self._leaders(TOPIC))
        return (
            f"topic '{TOPIC}' created: {PARTITIONS} partitions, 3 replicas each, "
            f"leaders spread {spread}"
        )

    async def active_controller_is_killed(self) -> Line:
        takeover = await self._kill_active()
        return (
            (
                f"controller {takeover.killed} killed with SIGKILL; {takeover.now_active} took "
                "over and committed the next change "
            ),
            Text(f"{takeover.took_ms:.0f} ms", "bold"),
            " after the kill",
        )

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
        if not await asyncio.to_thread(child.wait, STEP_LIMIT_S):
            self._fail(f"broker {STOPPED} did not stop within {STEP_LIMIT_S:.0f} s")
        if child.exit_code != 0:
            self._fail(f"broker {STOPPED} stopped with exit code {child.exit_code}")
        leaders = await self._leaders(TOPIC)
        if STOPPED in leaders or -1 in leaders:
            self._fail(f"leaders were not moved before the broker stopped: {leaders}")
        return f"broker {STOPPED} stopped cleanly: leaders moved first, everyone knew, then it went"

    async def audit_finds_the_intruder(self) -> Line:
        found = await asyncio.to_thread(find_intruder, self._cluster.folder / WEEK)
        if found is None or not found.right:
            self._fail(f"the audit's first finding is not the intruder, but {found}")
        return [
            f"a made-up week, {found.records} records: the audit names its intruder first: ",
            Text(found.finding.severity.word.upper(), "bold red"),
            f" {found.finding.sentence}",
        ]

    def _check_fencings(self, fenced: Sequence[tuple[int, int]]) -> None:
        """Read from the log itself: the failover fenced nobody, the pause exactly one."""
        by_failover = [b for at, b in fenced if self._before_kill <= at < self._after_failover]
        if by_failover:
            self._fail(f"the failover fenced brokers {by_failover}")
        # Brokers that stop at the end are fenced as they go; that is no fault.
        paused = [at for at, b in fenced if b == PAUSED and at < self._before_stopping]
        if len(paused) != 1:
            self._fail(f"broker {PAUSED} should have been fenced once; the log says {fenced}")
