"""The nemesis: faults of every kind, drawn from the seed, over a cluster; then peace.

Rule: each fault is begun and ended by the nemesis alone, at times drawn from its own dice, so
that a run is repeated by its seed. `heal` ends all of them at once and starts who is down:
from then on the cluster must recover, which is how liveness is judged. Faults overlap.

Damage at rest (flipped bits, wiped or restored disks) is not drawn here: what must hold after
it depends on which disks it hits, so a test does it by hand through `SimulatedHost.platter`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from runtime.simulated.disk_faults import FAST, SLOW, STUCK, DiskProfile
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import LOSSY, PLAIN, WILD, PathProfile, SimulatedNetwork
from runtime.simulated.network import SLOW as SLOW_PATHS
from runtime.simulated.world import US, World


class Cluster(Protocol):
    """What a nemesis needs of the cluster that it torments."""

    @property
    def world(self) -> World:
        """The world that it lives in."""

    @property
    def network(self) -> SimulatedNetwork:
        """The network between its nodes."""

    @property
    def hosts(self) -> Mapping[int, SimulatedHost]:
        """The machines of the nodes that may be tormented, by node id."""

    def start(self, node_id: int) -> None:
        """Start a node whose process is dead: boot its host and build its core."""

    def leader(self) -> int | None:
        """The node that leads now, as far as anybody can tell from outside."""

    def reset_link(self, one: int, other: int) -> None:
        """Break the link between two nodes (`SimulatedLinks.reset`), if there is one."""


class Torment(NamedTuple):
    """Which faults, how often and how long."""

    weights: Mapping[str, float]
    """Kind of fault (the tables below have all) to weight; the order counts for the dice."""
    gap_s: tuple[float, float] = (0.05, 1.5)
    """Between the beginnings of two faults."""
    length_s: tuple[float, float] = (0.1, 4.0)
    """Of one fault, short ones more often."""
    rates: tuple[float, float] = (0.5, 2.0)
    """Of a skewed monotonic clock."""


CRASHES = {"kill": 3.0, "kill_leader": 2.0, "kill_at_step": 3.0, "power": 3.0}
PAUSES = {"pause": 1.0, "pause_leader": 2.0}
CUTS = {
    "whole": 2.0,
    "one_way": 2.0,
    "bridge": 1.0,
    "isolate_leader": 2.0,
    "flapping": 1.0,
    "reset": 2.0,
}
DISKS = {"slow_disk": 2.0, "stuck_disk": 1.0}
CLOCKS = {"clock_rate": 1.0, "wall_jump": 1.0}
NOISE = {"lossy": 1.0, "slow_paths": 1.0, "wild": 2.0}

_CHANGES = ("write", "sync", "create", "rename", "unlink", "sync_folder")
"""What may fail with EIO."""

EVERYTHING = Torment({**CRASHES, **PAUSES, **CUTS, **DISKS, **CLOCKS, **NOISE})
"""All but the full disk, which the nodes must be built to live through."""
WITH_FULL_DISKS = Torment({**EVERYTHING.weights, "full_disk": 2.0})
WITHIN_PROMISE = Torment({k: w for k, w in EVERYTHING.weights.items() if k != "wild"})
"""Nothing that `runtime.links` rules out."""


class Nemesis:
    """Begins faults until it is told to heal."""

    def __init__(self, cluster: Cluster, torment: Torment = EVERYTHING) -> None:
        self.history: list[str] = []
        """Each fault, as a line: when, what, whom, how long."""
        self._cluster = cluster
        self._world = cluster.world
        self._network = cluster.network
        self._torment = torment
        self._kinds = list(torment.weights)
        self._weights = [torment.weights[kind] for kind in self._kinds]
        self._dice = cluster.world.random("nemesis")
        self._going = False
        self._acts: Mapping[str, Callable[[], None]] = {
            "kill": partial(self._kill, self._any),
            "kill_leader": partial(self._kill, self._leader),
            "kill_at_step": self._kill_at_step,
            "power": self._power,
            "pause": partial(self._pause, self._any),
            "pause_leader": partial(self._pause, self._leader),
            "whole": self._whole,
            "isolate_leader": self._isolate_leader,
            "bridge": self._bridge,
            "one_way": self._one_way,
            "flapping": self._flapping,
            "reset": self._reset,
            "lossy": partial(self._noise, "lossy", LOSSY),
            "slow_paths": partial(self._noise, "slow paths", SLOW_PATHS),
            "wild": partial(self._noise, "wild", WILD),
            "slow_disk": partial(self._disk, "slow disk", SLOW),
            "stuck_disk": partial(self._disk, "stuck disk", STUCK),
            "full_disk": lambda: self._full_disks(1),
            "full_disks": lambda: self._full_disks(self._dice.randint(2, len(self._nodes()))),
            "disk_error": self._disk_error,
            "stranded_leader": self._stranded_leader,
            "clock_rate": self._clock_rate,
            "wall_jump": self._wall_jump,
        }

    def start(self) -> None:
        """Begin."""
        self._going = True
        self._plan_next()

    def run_until(self, time: float) -> None:
        """Begin, and heal at `time` seconds of the world."""
        self.start()
        self._world.schedule(round(time * US) - self._world.now_us, self.heal, None, "heal")

    def heal(self) -> None:
        """End every fault, start every node that is down, and begin no more."""
        self._going = False
        self._network.heal()
        for node_id, host in self._cluster.hosts.items():
            host.faults.heal()
            if host.machine.rate != 1.0:
                host.machine.set_rate(1.0)
            host.resume()
            self._start(node_id)
        self.history.append(f"{self._world.now:10.4f} heal")

    def strike(self, kind: str) -> None:
        """Begin one fault of a kind now."""
        self._acts[kind]()

    # -- planning ----------------------------------------------------------------------------

    def _plan_next(self) -> None:
        low, high = self._torment.gap_s
        self._world.schedule(
            int(self._dice.uniform(low, high) * US), self._strike_next, None, "nemesis"
        )

    def _strike_next(self) -> None:
        if self._going:
            self.strike(self._dice.choices(self._kinds, self._weights)[0])
            self._plan_next()

    def _for_a_while(self, what: str, whom: object, end: Callable[[], None]) -> None:
        low, high = self._torment.length_s
        length_s = low * (high / low) ** self._dice.random()
        self._record(f"{what} {whom} for {length_s:.3f} s")

        def end_if_not_healed() -> None:
            if self._going:
                end()

        self._world.schedule(int(length_s * US), end_if_not_healed, None, "nemesis-end")

    def _record(self, text: str) -> None:
        self.history.append(f"{self._world.now:10.4f} {text}")

    def _nodes(self) -> list[int]:
        return list(self._cluster.hosts)

    def _host(self, node_id: int) -> SimulatedHost:
        return self._cluster.hosts[node_id]

    def _any(self) -> int:
        return self._dice.choice(self._nodes())

    def _leader(self) -> int:
        leader = self._cluster.leader()
        if leader is None or leader not in self._cluster.hosts:
            return self._any()
        return leader

    def _some(self, count: int) -> list[int]:
        return self._dice.sample(self._nodes(), min(count, len(self._nodes())))

    def _start(self, node_id: int) -> None:
        if not self._host(node_id).running:
            self._cluster.start(node_id)

    # -- crashes -----------------------------------------------------------------------------

    def _kill(self, pick: Callable[[], int]) -> None:
        node_id = pick()
        self._host(node_id).kill()
        self._for_a_while("kill", node_id, partial(self._start, node_id))

    def _kill_at_step(self) -> None:
        """Let a process die at one of its next changes of its disk, in the middle of a write."""
        node_id = self._any()
        faults = self._host(node_id).faults
        faults.kill_at(self._dice.randrange(30), self._dice.random())

        def end() -> None:
            faults.spare()
            self._start(node_id)

        self._for_a_while("kill at step", node_id, end)

    def _power(self) -> None:
        size = len(self._nodes())
        count = self._dice.choice((1, (size - 1) // 2, size // 2 + 1, size))
        nodes = self._some(max(count, 1))
        for node_id in nodes:
            self._host(node_id).lose_power()

        def restore() -> None:
            for node_id in nodes:
                self._start(node_id)

        self._for_a_while("power", nodes, restore)

    def _pause(self, pick: Callable[[], int]) -> None:
        node_id = pick()
        self._host(node_id).pause()
        self._for_a_while("pause", node_id, self._host(node_id).resume)

    # -- cuts --------------------------------------------------------------------------------

    def _cut(self, what: str, one: Sequence[int], other: Sequence[int]) -> None:
        self._network.cut(one, other, hold=self._dice.random() < 0.3)
        mend = partial(self._network.mend, one, other)
        self._for_a_while(what, f"{list(one)} | {list(other)}", mend)

    def _whole(self) -> None:
        nodes = self._some(len(self._nodes()))
        at = self._dice.randint(1, max(len(nodes) - 1, 1))
        self._cut("cut", nodes[:at], nodes[at:])

    def _isolate_leader(self) -> None:
        leader = self._leader()
        self._cut("isolate", [leader], [n for n in self._nodes() if n != leader])

    def _stranded_leader(self) -> None:
        """Pause the leader and let it wake among its clients, cut off from its peers."""
        leader = self._leader()
        host = self._host(leader)
        self._cut("strand", [leader], [n for n in self._nodes() if n != leader])
        host.pause()
        self._for_a_while("while it pauses", leader, host.resume)

    def _bridge(self) -> None:
        """Leave two halves that meet in one node only."""
        nodes = self._some(len(self._nodes()))[1:]
        half = len(nodes) // 2
        self._cut("bridge", nodes[:half], nodes[half:])

    def _one_way(self) -> None:
        """Cut what one node sends, or what it receives, to or from some of the others."""
        node_id = self._leader() if self._dice.random() < 0.5 else self._any()
        others = [n for n in self._some(len(self._nodes())) if n != node_id]
        others = others[: self._dice.randint(1, max(len(others), 1))]
        outward = self._dice.random() < 0.5
        pairs = [(node_id, n) if outward else (n, node_id) for n in others]
        for source, target in pairs:
            self._network.block(source, target)

        def end() -> None:
            for source, target in pairs:
                self._network.unblock(source, target)

        self._for_a_while("one way", pairs, end)

    def _flapping(self) -> None:
        """Cut and mend one pair again and again."""
        one, other = self._some(2) if len(self._nodes()) > 1 else (0, 0)
        state = {"cut": False, "over": False}

        def flip() -> None:
            if state["over"] or not self._going:
                return
            state["cut"] = not state["cut"]
            act = self._network.cut if state["cut"] else self._network.mend
            act([one], [other])
            delay_us = int(self._dice.uniform(0.1, 1.0) * US)
            self._world.schedule(delay_us, flip, None, "flap")

        def end() -> None:
            state["over"] = True
            if state["cut"]:
                self._network.mend([one], [other])

        flip()
        self._for_a_while("flapping", (one, other), end)

    def _reset(self) -> None:
        if len(self._nodes()) > 1:
            one, other = self._some(2)
            self._record(f"reset {one} {other}")
            self._cluster.reset_link(one, other)

    def _noise(self, what: str, profile: PathProfile) -> None:
        self._network.set_profile(profile)
        self._for_a_while(what, "all", partial(self._network.set_profile, PLAIN))

    # -- disks and clocks --------------------------------------------------------------------

    def _disk(self, what: str, profile: DiskProfile) -> None:
        node_id = self._leader() if self._dice.random() < 0.5 else self._any()
        faults = self._host(node_id).faults
        faults.set_profile(profile)
        self._for_a_while(what, node_id, partial(faults.set_profile, FAST))

    def _full_disks(self, count: int) -> None:
        nodes = self._some(count)
        hosts = [self._host(node_id) for node_id in nodes]
        for host in hosts:
            room = self._dice.randrange(20_000)
            host.faults.capacity_bytes = host.platter.used_bytes() + room

        def end() -> None:
            for node_id, host in zip(nodes, hosts, strict=True):
                host.faults.capacity_bytes = None
                # It may have stopped itself, as it says it does.
                self._start(node_id)

        self._for_a_while("full disk", nodes, end)

    def _disk_error(self) -> None:
        """Fail one change of a disk that comes soon; the node may stop itself."""
        node_id = self._leader() if self._dice.random() < 0.5 else self._any()
        faults = self._host(node_id).faults
        operation = self._dice.choice(_CHANGES)
        faults.fail(operation, self._dice.randrange(8))

        def end() -> None:
            faults.succeed()
            self._start(node_id)

        self._for_a_while(f"error of {operation}", node_id, end)

    def _clock_rate(self) -> None:
        machine = self._host(self._any()).machine
        machine.set_rate(self._dice.uniform(*self._torment.rates))
        whom = f"{machine.node_id} at {machine.rate:.3f}"
        self._for_a_while("clock rate", whom, partial(machine.set_rate, 1.0))

    def _wall_jump(self) -> None:
        seconds = self._dice.choice((-86_400.0, -3_600.0, -1.0, 0.5, 3_600.0, 86_400.0))
        node_id = self._any()
        self._host(node_id).machine.jump_wall(seconds)
        self._record(f"wall jump {node_id} by {seconds} s")
