"""A second process for a broker's id, on another machine: the hard case of fencing.

Rule: the first process is paused for longer than its session, like a virtual machine that its host
does not run. It wakes while the second serves, or dies just before. At most one of them may serve
(I8). That is checked after every event of either, by its own statement and by the log.

All clocks run at the same rate here: a lease holds for clocks that agree within a fifth.
"""

from typing import Any

from runtime.simulated.host import SimulatedHost

FIRST_TWIN_HOST = 201
EVERY_S = 4.0
PAUSE_SESSIONS = (0.3, 4.0)
TWIN_SESSIONS = (1.0, 6.0)


class DuplicateBrokers:
    """Starts and ends second processes until the cluster is healed."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._dice = cluster.world.random("twins")
        self.hosts = {
            broker_id: SimulatedHost(cluster.world, cluster.network, FIRST_TWIN_HOST + broker_id)
            for broker_id in cluster.broker_hosts
        }
        self.incarnations: dict[int, Any] = {}
        """The newest process on each second machine."""

    def incarnation_on(self, host_id: int) -> Any:
        """Return the process on a second machine, if that is one."""
        return self.incarnations.get(host_id - FIRST_TWIN_HOST)

    def start(self) -> None:
        """Begin."""
        self._cluster.later(self._dice.expovariate(1 / EVERY_S), self._inject)

    def end(self) -> None:
        """Only the first processes go on."""
        for host in self.hosts.values():
            host.kill()

    def _inject(self) -> None:
        cluster, dice = self._cluster, self._dice
        if not cluster.busy or cluster.healed:
            return
        broker_id = dice.choice(list(self.hosts))
        first, second = cluster.broker_hosts[broker_id], self.hosts[broker_id]
        session_s = cluster.shape.session_s
        if first.running and not second.running:
            first.pause()
            cluster.later(dice.uniform(*PAUSE_SESSIONS) * session_s, first.resume)
            cluster.later(dice.uniform(0.0, session_s), lambda: self._begin(broker_id))
            cluster.later(dice.uniform(*TWIN_SESSIONS) * session_s, second.kill)
        self.start()

    def _begin(self, broker_id: int) -> None:
        host = self.hosts[broker_id]
        if self._cluster.healed or host.running:
            return
        process = host.boot()

        def begin() -> None:
            self.incarnations[broker_id] = self._cluster.begin_agent(broker_id, host, process)

        process.run(begin, "start-twin")
