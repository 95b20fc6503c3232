"""Rules that race with changes, on a real quorum under faults.

Invariant: no record is committed for a principal whom the state before it refuses. The judge is the
second one (`tests/reference/access.py`), which knows nothing of the product. The state before a
batch is folded from the log itself. LOGBERG_EXAMPLES sets how many seeds run.
"""

import os
from collections import Counter
from random import Random
from typing import Any

import pytest

from metadata.messages import WantedState
from runtime.http.requests import Caller
from runtime.simulated.process import Death
from tests.simulation.rights_fold import RightsFold
from tests.unit.controller.cluster import Broker
from tests.unit.controller.real_cluster import RealCluster

pytestmark = pytest.mark.simulation

SEEDS = int(os.environ.get("LOGBERG_EXAMPLES", "4"))
STEPS = 150
COST_US = 400
"""What a look at the clock costs. So a leader decides few changes in one go, and others wait."""
SUPER = "User:root"
ROOT = Caller(SUPER, "token", "10.0.0.9")
OF_BROKER = Caller("Broker:1", "certificate", "10.0.0.1")
USERS = tuple(Caller(f"User:{name}", "token", "10.0.0.7") for name in ("alice", "bob"))
NAMES = ("a", "ab", "abc", "b", "bc")


class Race:
    """One cluster, users that change topics, and a super user that changes the rules."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.cluster: Any = RealCluster(
            seed=seed, authorization="on", super_users=frozenset({SUPER})
        )
        self.broker = Broker(self.cluster, 1)
        self.answers: list[list[Any]] = []
        self.beats: list[Any] = []
        self.down: int | None = None

    def run(self) -> None:
        for step in range(STEPS):
            if step % 10 == 0:
                self.beat()
            if step % 50 == 25:
                self.fault()
            if step % 50 == 45:
                self.mend()
            for process in self.cluster.processes.values():
                process.clock.cost_us = COST_US
            for _ in range(self.dice.choice((1, 2, 12))):
                self.ask()
            self.cluster.run(self.dice.choice((0.0, 0.001, 0.02)))
        self.mend()
        self.cluster.settle()

    def beat(self) -> None:
        """Let the broker send a heartbeat to whoever leads."""
        leader = self.cluster.shared.leader
        if leader is None:
            return
        wanted = WantedState.FENCED if self.broker.epoch < 0 else WantedState.ONLINE
        replies = self.broker.send(wanted, node=leader, caller=OF_BROKER)
        self.cluster.world.run_for(1.0, lambda: bool(replies))
        if replies:
            self.broker.take(replies[0])

    def fault(self) -> None:
        """Cut the leader off, or take its power."""
        leader = self.cluster.shared.leader
        if leader is None or self.down is not None:
            return
        self.down = leader
        others = [node for node in self.cluster.hosts if node != leader]
        if self.dice.random() < 0.5:
            self.cluster.network.cut([leader], others)
        else:
            self.cluster.kill(leader, Death.POWER)

    def mend(self) -> None:
        node, self.down = self.down, None
        if node is None:
            return
        self.cluster.network.heal()
        if node not in self.cluster.controllers:
            self.cluster.start(node)
        self.cluster.run_until(lambda: self.cluster.shared.leader is not None)

    def ask(self) -> None:
        """Send one request to a node, and don't wait for it."""
        dice = self.dice
        node = dice.choice(sorted(self.cluster.controllers))
        leader = self.cluster.shared.leader
        if leader in self.cluster.controllers and dice.random() < 0.7:
            node = leader
        what, name = dice.random(), dice.choice(NAMES)
        if what < 0.3:
            entry = {
                "resourceType": "TOPIC",
                "resourceName": dice.choice((name, name, "*")),
                "patternType": "LITERAL",
                "operation": dice.choice(("CREATE", "DELETE", "ALL")),
                "principal": dice.choice(("User:alice", "User:bob", "User:*")),
                "permissionType": dice.choice(("ALLOW", "ALLOW", "ALLOW", "DENY")),
            }
            if entry["resourceName"] != "*" and dice.random() < 0.3:
                entry["patternType"] = "PREFIXED"
            self.send("POST", "/v1/acls", {"acls": [entry]}, node, ROOT)
        elif what < 0.5:
            wanted = {"principal": dice.choice(("User:alice", "User:bob", "User:*"))}
            if dice.random() < 0.7:
                wanted["resourceName"] = name
            self.send("DELETE", "/v1/acls", {"filters": [wanted]}, node, ROOT)
        else:
            caller = dice.choice(USERS)
            if dice.random() < 0.6:
                # A large one is prepared beside others.
                count = dice.choice((1, 1, 1, 2_000))
                topic = {"name": name, "numPartitions": count, "replicationFactor": 1}
                self.send("POST", "/v1/topics", {"topics": [topic]}, node, caller)
            else:
                self.send("DELETE", "/v1/topics", {"names": [name]}, node, caller)

    def send(self, method: str, path: str, body: Any, node: int, caller: Caller) -> None:
        self.answers.append(self.cluster.send(method, path, body, node=node, caller=caller))

    def statuses(self) -> Counter[int]:
        return Counter(replies[0].status for replies in self.answers if replies)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_committed_for_whom_the_state_before_it_refuses(seed: int) -> None:
    race = Race(seed)
    race.run()
    fold = RightsFold({SUPER})
    wrong = [each for batch in race.cluster.batches() for each in fold.take(batch)]
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)
    statuses = race.statuses()
    assert fold.by_users.total() >= 3, f"seed {seed} tries nothing: {statuses}"
    assert statuses[403] >= 3, f"seed {seed} refuses nothing: {statuses}"
