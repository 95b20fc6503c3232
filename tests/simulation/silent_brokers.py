"""I20: a broker is fenced for its silence only if its process could not reach the controllers.

Rule: a process that runs, and whose requests arrive, is heard from within a session. A new leader
gives every broker a whole session from its own begin, so a failover changes nothing. Each fencing
in the log is judged. If the process of that broker epoch still runs, something must have hindered
it since the leader began that fenced it, or within the last two sessions.

A pause of the process hinders it, and so does a network that loses what is sent. Faults cut
controllers off from each other, and not from brokers, unless both are one process (`combined`).
There nothing is judged until the faults have ended. Nor is anything while clocks run at different
rates.
"""

import math
from collections import Counter
from typing import Any

from broker_agent.states import BrokerState
from tests.simulation.broker_leases import US, clocks_differ


class SilentBrokers:
    """Judges the processes of brokers that are fenced for their silence."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._began_us: dict[int, int] = {}
        """Epoch → the world's time at which its leader was first seen to lead."""
        self.counts: Counter[str] = Counter()

    def look_for_leader(self, controller: Any) -> None:
        """A controller's image has changed: note since when it leads, if it does."""
        if controller.active:
            epoch = controller.quorum.leader_and_epoch().epoch
            self._began_us.setdefault(epoch, self._cluster.world.now_us)

    def fenced(self, incarnation: Any, broker_epoch: int, leader_epoch: int) -> None:
        """The fencing of a broker by the leader of an epoch is committed."""
        cluster, agent, process = self._cluster, incarnation.agent, incarnation.process
        if agent is None or agent.broker_epoch != broker_epoch:
            return
        if not process.alive or process.paused or agent.state is BrokerState.GONE:
            self.counts["silent brokers: ended or paused"] += 1
            return
        judged_from_us = max(
            self._began_us.get(leader_epoch, -math.inf),
            cluster.world.now_us - 2 * cluster.shape.session_s * US,
        )
        if self._free_since_us(process) > judged_from_us or clocks_differ(cluster):
            self.counts["silent brokers: hindered before"] += 1
            return
        cluster.world.fail(
            f"I20: broker {incarnation.broker_id} was fenced for its silence by the leader of "
            f"epoch {leader_epoch}, although its process ran and could reach it",
            process.node_id,
        )

    def _free_since_us(self, process: Any) -> float:
        """Return since when nothing hinders a process; -inf: nothing ever did."""
        cluster = self._cluster
        network = cluster.network
        uncut_us = -math.inf if cluster.combined is None else network.healed_us
        since_us: float = max(uncut_us, network.plain_since_us, process.resumed_us)
        return since_us
