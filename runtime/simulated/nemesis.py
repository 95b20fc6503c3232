"""The nemesis: injects random faults of every kind into a cluster, and ends all of them.

Rule: only the nemesis begins and ends faults. It draws their times from a random stream of its own,
so a seed repeats a run. Faults overlap. `heal` ends all of them at once and starts the nodes that
are down. From then on the cluster must recover; that is the test of liveness.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from runtime.simulated.crash_faults import CrashFaults
from runtime.simulated.damage_faults import DamageFaults, FaultAtlas
from runtime.simulated.device_faults import DeviceFaults
from runtime.simulated.fault_injector import FaultInjector, FaultTarget, UnderWay, nothing_to_tell
from runtime.simulated.fault_schedules import EVERYTHING, FaultSchedule
from runtime.simulated.network_faults import NetworkFaults
from runtime.simulated.targeted_faults import Pair, TargetedFaults
from runtime.simulated.triggered_fault import TriggeredFault
from runtime.simulated.world import US


class Nemesis:
    """Begins faults until `heal` is called."""

    def __init__(
        self,
        cluster: FaultTarget,
        fault_schedule: FaultSchedule = EVERYTHING,
        under_way: UnderWay = nothing_to_tell,
        fault_atlas: FaultAtlas | None = None,
        operations: Sequence[str] = (),
        targeted: Sequence[Pair] = (),
        more_acts: Mapping[str, Callable[[], None]] | None = None,
    ) -> None:
        """`under_way` returns the operations under way on some nodes, out of `operations`.

        Without a `fault_atlas` there are no damage faults. `targeted` are the pairs of
        `TargetedFaults`, `more_acts` are faults that only it uses.
        """
        self._cluster = cluster
        self._world = cluster.world
        self._kinds = list(fault_schedule.weights)
        self._weights = [fault_schedule.weights[kind] for kind in self._kinds]
        self._injector = injector = FaultInjector(cluster, fault_schedule, under_way)
        self._acts: dict[str, Callable[[], None]] = {
            **CrashFaults(injector).acts,
            **NetworkFaults(injector).acts,
            **DeviceFaults(injector).acts,
        }
        self._damage = DamageFaults(injector, fault_atlas) if fault_atlas is not None else None
        if self._damage is not None:
            self._acts |= self._damage.acts
        known = dict(self._acts)
        self._acts |= TriggeredFault(injector, dict(known), operations).acts
        if self._damage is not None:
            known |= self._damage.acts_at_once
        self._targeted = TargetedFaults(
            injector, {**known, **(more_acts or {})}, targeted, self._hits
        )

    @property
    def history(self) -> list[str]:
        """A line for each fault: when, what, on which nodes, how long."""
        return self._injector.history

    @property
    def counts(self) -> Counter[str]:
        """The number of faults of each kind."""
        return self._injector.counts

    @property
    def met(self) -> dict[str, Counter[str]]:
        """By kind of fault, the operations that were under way on the nodes that it hit."""
        return self._injector.met

    @property
    def victims(self) -> list[int]:
        """The nodes that damage faults may hit."""
        return [] if self._damage is None else self._damage.victims

    def start(self) -> None:
        """Begin to inject faults."""
        self._injector.going = True
        self._plan_next(self._injector.fault_schedule.first_s)
        self._targeted.start()

    def run_until(self, time: float) -> None:
        """Begin to inject faults, and heal when the world's clock is at `time` seconds."""
        self.start()
        self._world.schedule(round(time * US) - self._world.now_us, self.heal, None, "heal")

    def heal(self) -> None:
        """End every fault, start every node that is down, and begin no more faults."""
        self._injector.going = False
        self._cluster.network.heal()
        for host in self._cluster.hosts.values():
            host.faults.heal()
            if host.machine.rate != 1.0:
                host.machine.set_rate(1.0)
        # Only now: a node that gets its folder back starts at once, and must not meet a fault.
        if self._damage is not None:
            self._damage.heal()
        for node_id, host in self._cluster.hosts.items():
            host.resume()
            self._injector.start(node_id)
        self._injector.record("heal")

    def inject(self, kind: str) -> None:
        """Begin one fault of this kind now."""
        self._injector.kind = kind
        self._acts[kind]()

    def _hits(self, kind: str, node_id: int) -> bool:
        damage = self._damage
        return damage is None or kind not in damage.acts or damage.would_hit(kind, node_id)

    def _plan_next(self, within_s: tuple[float, float] | None = None) -> None:
        low, high = within_s or self._injector.fault_schedule.gap_s
        self._world.schedule(
            int(self._injector.dice.uniform(low, high) * US), self._inject_next, None, "nemesis"
        )

    def _inject_next(self) -> None:
        if self._injector.going:
            self.inject(self._injector.dice.choices(self._kinds, self._weights)[0])
            self._plan_next()
