"""Nodes of both roles: a controller and a broker's agent in one simulated process.

Rule: what strikes a node strikes both roles at once. When the agent has ended, in order or because
it was refused, the controller stops and the process ends, as in the product (ADR 0035). Then a
supervisor starts the node again.

Meanwhile an operator restarts the nodes in turn: each time one node is asked to stop, and the next
one only when the cluster is whole again.
"""

from collections import Counter
from functools import partial
from typing import Any

from broker_agent.states import BrokerState
from runtime.simulated.process import SimulatedProcess

RESTART_S = (0.2, 1.5)
"""How soon a supervisor or an operator starts a node again."""
PAUSE_S = 1.0
"""Between two looks of the operator."""
FOLDER = "broker"
"""The agent's folder on the node's disk."""


class CombinedNodes:
    """The nodes of a cluster in which each has both roles."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._dice = cluster.world.random("combined")
        self._turn = 0
        self._failed: set[SimulatedProcess] = set()
        """Processes whose disk has reported an error."""
        self.counts: Counter[str] = Counter()

    def begin_agent(self, node_id: int, process: SimulatedProcess) -> None:
        """Start the agent in a process whose controller has started."""
        cluster = self._cluster
        incarnation = cluster.begin_agent(node_id, cluster.hosts[node_id], process, FOLDER)
        incarnation.end = partial(self._end, node_id, process)
        cluster.brokers[node_id] = incarnation

    def controller_stopped(self, node_id: int, process: SimulatedProcess, *, failed: bool) -> None:
        """A controller can't go on: its agent hands its leaders over, then the process ends.

        `failed`: the disk reported an error. Then what was not synced may be lost, at the end of
        the process or before the agent is through.
        """
        self.counts["controller stopped itself"] += 1
        if failed:
            self.counts["controller stopped by a disk error"] += 1
            self._failed.add(process)
            if self._dice.random() < 0.5:
                cut = partial(self._end, node_id, process)
                self._cluster.later(self._dice.uniform(0.0, 1.0), cut)
        incarnation = self._cluster.brokers.get(node_id)
        if incarnation is None or incarnation.process is not process:
            # It stopped while it started: there is no agent yet.
            process.schedule(0, partial(self._end, node_id, process), "stopped")
        else:
            process.schedule(0, incarnation.agent.stop, "stop-agent")

    def start(self) -> None:
        """Begin the operator's rounds."""
        self._later(self._restart_one)

    def _end(self, node_id: int, process: SimulatedProcess) -> None:
        """The agent has ended, or power is cut: the controller stops, and the process ends."""
        if not process.alive:
            return
        cluster = self._cluster
        incarnation = cluster.brokers.get(node_id)
        if incarnation is not None and incarnation.process is process:
            self.counts["handed over" if incarnation.orderly else "ended by a failed agent"] += 1
        if process in self._failed:
            self._failed.discard(process)
            cluster.hosts[node_id].lose_power()
        else:
            cluster.controllers[node_id].stop()
            process.kill()
        cluster.later(self._dice.uniform(*RESTART_S), partial(self._start, node_id))

    def _start(self, node_id: int) -> None:
        if not self._cluster.hosts[node_id].running:
            self._cluster.start(node_id)

    def _restart_one(self) -> None:
        cluster = self._cluster
        if not cluster.busy or cluster.healed:
            return
        if self._whole():
            nodes = sorted(cluster.hosts)
            incarnation = cluster.brokers[nodes[self._turn % len(nodes)]]
            self._turn += 1
            self.counts["asked to stop"] += 1
            incarnation.process.schedule(0, incarnation.agent.stop, "stop-node")
        self._later(self._restart_one)

    def _whole(self) -> bool:
        """Whether an operator sees every node in service."""
        cluster = self._cluster
        return cluster.leader() is not None and all(
            incarnation.process.alive
            and not incarnation.process.paused
            and incarnation.agent.state is BrokerState.ONLINE
            for incarnation in cluster.brokers.values()
        )

    def _later(self, act: Any) -> None:
        self._cluster.later(PAUSE_S, act)
