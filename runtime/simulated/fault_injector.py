"""What every kind of fault uses: random numbers, target nodes, a duration, and a record.

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
"""Returns the names of the operations that are under way on these nodes."""


def nothing_to_tell(_nodes: Sequence[int]) -> Sequence[str]:
    """Return no operation: for a cluster that doesn't report any."""
    return ()


class FaultTarget(Protocol):
    """The cluster that a nemesis disturbs."""

    @property
    def world(self) -> World:
        """The world of the cluster."""

    @property
    def network(self) -> SimulatedNetwork:
        """The network between its nodes."""

    @property
    def hosts(self) -> Mapping[int, SimulatedHost]:
        """The hosts of the nodes that may be disturbed, by node id."""

    def start(self, node_id: int) -> None:
        """Start a node whose process is dead: boot its host and build its core."""

    def leader(self) -> int | None:
        """Return the present leader; None if there seems to be none."""

    def reset_link(self, one: int, other: int) -> None:
        """Break the link between two nodes (`SimulatedLinks.reset`), if there is one."""


class FaultInjector:
    """Picks the nodes that a fault hits, ends faults in time, and keeps a record."""

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
        """The kind of the fault that begins now."""
        self.aim: int | None = None
        """The node that the fault must hit; None: the fault picks one."""
        self.history: list[str] = []
        self.counts: Counter[str] = Counter()
        self.met: dict[str, Counter[str]] = {}

    def on(self, nodes: Sequence[int]) -> None:
        """Count a fault and the operations under way. To be called before it takes effect."""
        self.counts[self.kind] += 1
        self.met.setdefault(self.kind, Counter()).update(self.under_way(nodes))

    def for_a_while(self, what: str, whom: object, end: Callable[[], None]) -> None:
        """Draw how long a fault lasts. Call `end` after that, unless everything is healed."""
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
        """Return all nodes."""
        return list(self.cluster.hosts)

    def host(self, node_id: int) -> SimulatedHost:
        """Return a node's host."""
        return self.cluster.hosts[node_id]

    def any(self) -> int:
        """Pick a node."""
        return self.dice.choice(self.nodes()) if self.aim is None else self.aim

    def leader(self) -> int:
        """Pick the leader, or any node if there is none."""
        leader = self.cluster.leader() if self.aim is None else self.aim
        if leader is None or leader not in self.cluster.hosts:
            return self.any()
        return leader

    def any_or_leader(self) -> int:
        """Pick the leader in half of all cases, else any node."""
        return self.leader() if self.dice.random() < 0.5 else self.any()

    def some(self, count: int) -> list[int]:
        """Pick `count` nodes, in random order."""
        chosen = self.dice.sample(self.nodes(), min(count, len(self.nodes())))
        if self.aim is not None and self.aim not in chosen:
            chosen[0] = self.aim
        return chosen

    def start(self, node_id: int) -> None:
        """Start a node unless it is running."""
        if not self.host(node_id).running:
            self.cluster.start(node_id)
