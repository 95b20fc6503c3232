"""The nemesis: faults of every kind, drawn from the seed, over a cluster; then peace.

Rule: each fault is begun and ended by the nemesis alone, at times drawn from its own dice, so
that a run is repeated by its seed. `heal` ends all of them at once and starts who is down:
from then on the cluster must recover, which is how liveness is judged. Faults overlap.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from runtime.simulated.ambush import Ambush
from runtime.simulated.crash_faults import CrashFaults
from runtime.simulated.damage import Damage, Ward
from runtime.simulated.device_faults import DeviceFaults
from runtime.simulated.hunt import Hunt, Pair
from runtime.simulated.network_faults import NetworkFaults
from runtime.simulated.strikes import Cluster, Strikes, UnderWay, nothing_to_tell
from runtime.simulated.torments import EVERYTHING, Torment
from runtime.simulated.world import US


class Nemesis:
    """Begins faults until it is told to heal."""

    def __init__(
        self,
        cluster: Cluster,
        torment: Torment = EVERYTHING,
        under_way: UnderWay = nothing_to_tell,
        ward: Ward | None = None,
        prey: Sequence[str] = (),
        hunted: Sequence[Pair] = (),
        more_acts: Mapping[str, Callable[[], None]] | None = None,
    ) -> None:
        """`under_way` tells what a strike meets, of what `prey` lists; no ward, no damage.

        `hunted` are pairs for a hunt, `more_acts` faults that only a hunt has use for.
        """
        self._cluster = cluster
        self._world = cluster.world
        self._kinds = list(torment.weights)
        self._weights = [torment.weights[kind] for kind in self._kinds]
        self._strikes = strikes = Strikes(cluster, torment, under_way)
        self._acts: dict[str, Callable[[], None]] = {
            **CrashFaults(strikes).acts,
            **NetworkFaults(strikes).acts,
            **DeviceFaults(strikes).acts,
        }
        self._damage = Damage(strikes, ward) if ward is not None else None
        if self._damage is not None:
            self._acts |= self._damage.acts
        known = dict(self._acts)
        self._acts |= Ambush(strikes, dict(known), prey).acts
        if self._damage is not None:
            known |= self._damage.acts_at_once
        self._hunt = Hunt(strikes, {**known, **(more_acts or {})}, hunted, self._hits)

    @property
    def history(self) -> list[str]:
        """Each fault, as a line: when, what, whom, how long."""
        return self._strikes.history

    @property
    def counts(self) -> Counter[str]:
        """How often each kind has struck."""
        return self._strikes.counts

    @property
    def met(self) -> dict[str, Counter[str]]:
        """By kind, which operations were under way where it struck."""
        return self._strikes.met

    @property
    def victims(self) -> list[int]:
        """Who may be damaged."""
        return [] if self._damage is None else self._damage.victims

    def start(self) -> None:
        """Begin."""
        self._strikes.going = True
        self._plan_next(self._strikes.torment.first_s)
        self._hunt.start()

    def run_until(self, time: float) -> None:
        """Begin, and heal at `time` seconds of the world."""
        self.start()
        self._world.schedule(round(time * US) - self._world.now_us, self.heal, None, "heal")

    def heal(self) -> None:
        """End every fault, start every node that is down, and begin no more."""
        self._strikes.going = False
        self._cluster.network.heal()
        for host in self._cluster.hosts.values():
            host.faults.heal()
            if host.machine.rate != 1.0:
                host.machine.set_rate(1.0)
        # Not before: who gets its folder back starts at once, and must not meet a fault.
        if self._damage is not None:
            self._damage.heal()
        for node_id, host in self._cluster.hosts.items():
            host.resume()
            self._strikes.start(node_id)
        self._strikes.record("heal")

    def strike(self, kind: str) -> None:
        """Begin one fault of a kind now."""
        self._strikes.kind = kind
        self._acts[kind]()

    def _hits(self, kind: str, node_id: int) -> bool:
        damage = self._damage
        return damage is None or kind not in damage.acts or damage.would_hit(kind, node_id)

    def _plan_next(self, within_s: tuple[float, float] | None = None) -> None:
        low, high = within_s or self._strikes.torment.gap_s
        self._world.schedule(
            int(self._strikes.dice.uniform(low, high) * US), self._strike_next, None, "nemesis"
        )

    def _strike_next(self) -> None:
        if self._strikes.going:
            self.strike(self._strikes.dice.choices(self._kinds, self._weights)[0])
            self._plan_next()
