"""What befalls simulated brokers: kills, losses of power, pauses, and requests to stop."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from runtime.simulated.host import SimulatedHost
from tests.simulation.coverage import of_cluster

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

BROKER_ACTS = ("kill", "power", "pause", "stop")


class BrokerFaults:
    """The faults of one cluster's brokers."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._dice = cluster.world.random("brokers' fate")
        self._per_s = cluster.shape.broker_fault_schedule
        self.counts: Counter[str] = Counter()
        self.met: dict[str, Counter[str]] = {}
        """In which states of the cluster each of them came."""

    def begin(self) -> None:
        """Now and then something happens to some broker, from the third second on."""
        if self._per_s > 0:
            self._cluster.later(2.0, self._inject_again)

    def none(self) -> None:
        """Let nothing happen to a broker."""
        self._per_s = 0.0

    def _inject_again(self) -> None:
        if not self._cluster.busy or not self._per_s:
            return
        broker_id = self._dice.choice(list(self._cluster.broker_hosts))
        host = self._cluster.broker_hosts[broker_id]
        act = self._dice.choice(BROKER_ACTS)
        back_s = self._back_s()
        if host.running:
            self._inject(host, broker_id, act)
        self._cluster.later(back_s, lambda: self.bring_back(broker_id))
        self._cluster.later(self._dice.expovariate(self._per_s), self._inject_again)

    def at_once(self) -> dict[str, Callable[[], None]]:
        """Return what may happen to some running broker, to be done when wanted."""
        return {f"broker {act}": partial(self._inject_some, act) for act in BROKER_ACTS}

    def bring_back(self, broker_id: int) -> None:
        """Let a broker's process go on, or start one if none runs."""
        host = self._cluster.broker_hosts[broker_id]
        host.resume()
        if not host.running:
            self._cluster.start_broker(broker_id)

    def heal(self) -> None:
        """Bring every broker back, for good."""
        self._cluster.duplicate_brokers.end()
        self._cluster.movers.replace_disks()
        for broker_id in self._cluster.broker_hosts:
            self.bring_back(broker_id)
            # One that was asked to stop comes back once it has gone.
            for seconds in range(1, 40):
                self._cluster.later(float(seconds), lambda b=broker_id: self.bring_back(b))

    def _inject_some(self, act: str) -> None:
        hosts = self._cluster.broker_hosts
        running = [b for b, host in hosts.items() if host.running and b in self._cluster.brokers]
        if running and self._cluster.busy:
            broker_id = self._dice.choice(running)
            self._inject(hosts[broker_id], broker_id, act)
            self._cluster.later(self._back_s(), lambda: self.bring_back(broker_id))

    def _inject(self, host: SimulatedHost, broker_id: int, act: str) -> None:
        self.counts[f"broker {act}"] += 1
        met = self.met.setdefault(f"broker {act}", Counter())
        met.update(of_cluster(self._cluster, list(self._cluster.hosts)))
        if act == "kill":
            host.kill()
        elif act == "power":
            host.lose_power()
        elif act == "pause":
            host.pause()
        else:
            incarnation = self._cluster.brokers[broker_id]
            incarnation.process.schedule(0, incarnation.agent.stop, "stop-broker")

    def _back_s(self) -> float:
        return self._dice.uniform(0.2, 2.5 * self._cluster.shape.session_s)
