"""The example service's leader: which followers it takes for in sync."""

from types import SimpleNamespace
from typing import Any

import pytest

import logberg as lb
from examples.replicated_kv import leading
from examples.replicated_kv.partition_log import Entry

KEY = lb.PartitionKey(bytes(16), 0)
OWN, OTHER = 1, 2


class Log:
    """The leader's log, without a file."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    @property
    def end(self) -> int:
        return len(self.entries)

    def append(self, entries: list[Entry]) -> None:
        self.entries += entries

    def end_of(self, epoch: int) -> tuple[int, int]:
        return 0, self.end


class Agent:
    """Grants each ISR at once, and counts the requests."""

    def __init__(self) -> None:
        self.isr = self
        self.members = [OWN, OTHER]
        self.asked: list[set[int]] = []
        replicas = SimpleNamespace(replicas=(OWN, OTHER))
        self.image = SimpleNamespace(topics=SimpleNamespace(partitions={KEY: replicas}))

    def health(self) -> Any:
        return SimpleNamespace(broker_id=OWN)

    def may_serve(self) -> bool:
        return True

    def of(self, key: lb.PartitionKey) -> lb.LedPartition:
        return lb.LedPartition(0, 0, tuple(self.members), frozenset(self.members))

    def ask(self, key: lb.PartitionKey, isr: dict[int, int]) -> bool:
        self.asked.append({*isr})
        self.members = sorted(isr)
        return True


class Stage:
    """A leader with one follower, and a clock that the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(leading, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.log, self.agent = Log(), Agent()
        self.leader = leading.Leading(self.agent, KEY, self.log, 0)  # type: ignore[arg-type]

    def write(self, count: int = 1) -> None:
        self.log.append([Entry(0, "key", "value")] * count)
        self.leader.advance()

    async def fetch(self, end: int) -> None:
        await self.leader.fetch(OTHER, 7, end, 0, 0.0)

    def wait(self, seconds: float) -> None:
        """Let time pass; the leader judges every 100 ms."""
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.leader.judge()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


async def test_a_silent_follower_leaves_the_isr_once(stage: Stage) -> None:
    """It has all that is committed, but it does not fetch: a SIGSTOP does that."""
    stage.write()
    await stage.fetch(1)
    stage.wait(10.0)
    assert stage.agent.asked == [{OWN}]


async def test_a_follower_that_fetches_again_comes_back(stage: Stage) -> None:
    stage.wait(3.0)
    stage.write(5)
    await stage.fetch(3)
    assert stage.agent.members == [OWN], "it lacks committed entries"
    await stage.fetch(5)
    assert stage.agent.members == [OWN, OTHER]


async def test_a_follower_one_fetch_behind_a_busy_leader_stays(stage: Stage) -> None:
    """It never holds the newest entry, but always what the leader had at its last fetch."""
    for _ in range(50):
        stage.write()
        await stage.fetch(stage.log.end - 1)
        stage.wait(0.2)
    assert stage.agent.asked == []


async def test_a_follower_that_falls_ever_further_behind_leaves(stage: Stage) -> None:
    for number in range(1, 20):
        stage.write(10)
        await stage.fetch(number)
        stage.wait(0.2)
    assert stage.agent.members == [OWN]
