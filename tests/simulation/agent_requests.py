"""Agents that take producer ids, and report in which directories their replicas lie.

Both use the product's own requests (`ProducerIds` and `DirectoryAssignments` of `broker_agent`),
through failovers, kills of brokers and every other fault.

- S5: no producer id is taken twice: not by one agent, nor by two, nor by two processes of a broker,
  nor from a block that an administrator got by hand.
- I17: once the faults have ended, the metadata shows the directory that each agent reported last.
"""

from collections import Counter
from functools import partial
from typing import Any

from broker_agent.directory_assignments import DirectoryAssignments
from broker_agent.producer_ids import ProducerIds
from broker_agent.publishers import Publisher
from metadata.partition_key import PartitionKey
from runtime.simulated.world import US
from tests.simulation.movers import directories_of
from tests.simulation.quorum_cluster import quiet_log

_ACTS_PER_S = 4.0
_TAKEN_AT_ONCE = 400
"""The most ids that a host takes at once. Three of them use up a block."""
_BLOCK = 1_000


class AgentRequests:
    """Those of all brokers of a cluster."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.facts: Counter[str] = Counter()
        self.owners: dict[int, Any] = {}
        """By number of a block: who uses it."""
        self._taken: dict[int, int] = {}
        """By number of a block: the highest id that was taken of it."""
        self._reports: dict[int, tuple[Any, DirectoryAssignments, dict[PartitionKey, bytes]]] = {}
        """By machine: the newest incarnation there, and what it reported. A second process for a
        broker's id (kind `twins`) has a machine of its own."""

    def publishers_of(self, incarnation: Any, requester: Any) -> tuple[Publisher, ...]:
        """Return what the agent of an incarnation has to call; `follow` begins the requests."""
        shape, clock = self._cluster.shape, incarnation.process.clock
        broker_id = incarnation.broker_id
        found: list[Any] = []
        if shape.clients:
            ids = ProducerIds(
                broker_id, clock=clock, requester=requester, on_ready=_ignore, log=quiet_log()
            )
            found.append(ids)
            dice = self._cluster.world.random(f"producer ids/{broker_id}")
            self._plan(incarnation, dice, partial(self._take, incarnation, ids, dice))
        if shape.moved:
            reports = DirectoryAssignments(
                broker_id,
                directories_of(broker_id),
                clock=clock,
                requester=requester,
                log=quiet_log(),
            )
            found.append(reports)
            dice = self._cluster.world.random(f"directories/{broker_id}")
            machine = incarnation.process.node_id
            self._reports[machine] = (incarnation, reports, {})
            self._plan(incarnation, dice, partial(self._report, machine, dice))
        incarnation.requests = tuple(found)
        return incarnation.requests

    def follow(self, incarnation: Any) -> None:
        """Let the agent's requests begin."""
        for requests in incarnation.requests:
            requests.follow(incarnation.agent)

    def _plan(self, incarnation: Any, dice: Any, act: Any) -> None:
        def go() -> None:
            if self._cluster.busy:
                act()
                self._plan(incarnation, dice, act)

        delay = int(dice.expovariate(_ACTS_PER_S) * US)
        incarnation.process.schedule(delay, go, "agent's request")

    def _take(self, incarnation: Any, ids: ProducerIds, dice: Any) -> None:
        for _ in range(dice.randint(1, _TAKEN_AT_ONCE)):
            taken = ids.take()
            if taken is None:
                self.facts["no producer id in time"] += 1
                return
            block = taken // _BLOCK
            if self.owner(block, incarnation) is not incarnation:
                self._cluster.world.fail(f"S5: the block of id {taken} has two users", None)
            if taken <= self._taken.get(block, -1):
                self._cluster.world.fail(f"S5: id {taken} was taken twice", None)
            self._taken[block] = taken
            self.facts["producer ids"] += 1

    def owner(self, block: int, user: Any) -> Any:
        """Return who uses a block: `user`, unless somebody else does already."""
        return self.owners.setdefault(block, user)

    def _report(self, machine: int, dice: Any) -> None:
        incarnation, reports, reported = self._reports[machine]
        broker_id = incarnation.broker_id
        if not incarnation.agent.may_serve():
            return
        here = sorted(incarnation.agent.image.topics.held_by(broker_id))
        for key in dice.sample(here, min(len(here), dice.randint(1, 6))):
            directory = dice.choice(directories_of(broker_id))
            reports.assign(PartitionKey(*key), directory)
            reported[PartitionKey(*key)] = directory
            self.facts["directories reported"] += 1

    def settled(self) -> bool:
        """No report waits for an answer."""
        return not any(reports.waiting() for _, reports, _ in self._at_rest())

    def _at_rest(self) -> list[tuple[Any, DirectoryAssignments, dict[PartitionKey, bytes]]]:
        """Return the reports of the brokers' own processes: no second one lives at rest.

        What a second one reported came before: once it is registered, the first one's process ends.
        """
        brokers = self._cluster.brokers
        return [
            each for each in self._reports.values() if brokers.get(each[0].broker_id) is each[0]
        ]

    def at_the_end(self) -> Counter[str]:
        """Compare the last reports with the metadata; replicas that left since are forgotten."""
        image = self._cluster.controllers[self._cluster.leader()].image
        for incarnation, reports, reported in self._at_rest():
            broker_id = incarnation.broker_id
            for key, directory in reported.items():
                partition = image.topics.partitions.get(key)
                if partition is None or key not in reports.reported:
                    continue
                shown = partition.directories[partition.replicas.index(broker_id)]
                if shown != directory:
                    self._cluster.world.fail(
                        f"I17: broker {broker_id} reported {directory!r} for {key}, and the "
                        f"metadata shows {shown!r}",
                        None,
                    )
                self.facts["directories judged"] += 1
        return self.facts


def _ignore() -> None:
    """The host looks again by itself."""
