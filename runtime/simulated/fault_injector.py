"""What every kind of fault needs: random numbers, target nodes, a duration, and a record.

Rule: a fault picks its targets before it acts, so coverage counts the operations that were in
progress when the fault started.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from runtime.simulated.fault_schedules import FaultSchedule
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.world import US, World

UnderWay = Callable[[Sequence[int]], Sequence[str]]
"""Tells which operations are under way on some nodes."""


def nothing_to_tell(_nodes: Sequence[int]) -> Sequence[str]:
    """Say of no operation that it is under way."""
    return ()


class FaultTarget(Protocol):
    """What a nemesis needs of the cluster that it disturbs."""

    @property
    def world(self) -> World:
        """The world that it lives in."""

    @property
    def network(self) -> SimulatedNetwork:
        """The network between its nodes."""

    @property
    def hosts(self) -> Mapping[int, SimulatedHost]:
        """The machines of the nodes that may be disturbed, by node id."""

    def start(self, node_id: int) -> None:
        """Start a node whose process is dead: boot its host and build its core."""

    def leader(self) -> int | None:
        """The node that leads now, as far as anybody can tell from outside."""

    def reset_link(self, one: int, other: int) -> None:
        """Break the link between two nodes (`SimulatedLinks.reset`), if there is one."""


class FaultInjector:
    """Picks victims, keeps times, and remembers."""

    def __init__(
        self, cluster: FaultTarget, fault_schedule: FaultSchedule, under_way: UnderWay
    ) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.network = cluster.network
        self.fault_schedule = fault_schedule
        self.under_way = under_way
        self.dice = cluster.world.random("nemesis")
        self.going = False
        self.kind = ""
        """Of the fault that strikes now."""
        self.aim: int | None = None
        """Whom it must hit, if that was decided already."""
        self.history: list[str] = []
        self.counts: Counter[str] = Counter()
        self.met: dict[str, Counter[str]] = {}

    def on(self, nodes: Sequence[int]) -> None:
        """Count a strike, and what it meets; just before it takes effect."""
        self.counts[self.kind] += 1
        self.met.setdefault(self.kind, Counter()).update(self.under_way(nodes))

    def for_a_while(self, what: str, whom: object, end: Callable[[], None]) -> None:
        """Draw how long a fault lasts; `end` ends it, unless everything was healed before."""
        low, high = self.fault_schedule.length_s
        length_s = low * (high / low) ** self.dice.random()
        self.record(f"{what} {whom} for {length_s:.3f} s")

        def end_if_not_healed() -> None:
            if self.going:
                end()

        self.world.schedule(int(length_s * US), end_if_not_healed, None, "nemesis-end")

    def record(self, text: str) -> None:
        """Add a line to the history."""
        self.history.append(f"{self.world.now:10.4f} {text}")

    def nodes(self) -> list[int]:
        """Return everybody."""
        return list(self.cluster.hosts)

    def host(self, node_id: int) -> SimulatedHost:
        """Return a node's machine."""
        return self.cluster.hosts[node_id]

    def any(self) -> int:
        """Pick a node."""
        return self.dice.choice(self.nodes()) if self.aim is None else self.aim

    def leader(self) -> int:
        """Pick the leader, or anybody when there is none."""
        leader = self.cluster.leader() if self.aim is None else self.aim
        if leader is None or leader not in self.cluster.hosts:
            return self.any()
        return leader

    def any_or_leader(self) -> int:
        """Pick the leader as often as anybody."""
        return self.leader() if self.dice.random() < 0.5 else self.any()

    def some(self, count: int) -> list[int]:
        """Pick some nodes, in an order that was drawn."""
        chosen = self.dice.sample(self.nodes(), min(count, len(self.nodes())))
        if self.aim is not None and self.aim not in chosen:
            chosen[0] = self.aim
        return chosen

    def start(self, node_id: int) -> None:
        """Start a node, unless it runs."""
        if not self.host(node_id).running:
            self.cluster.start(node_id)
