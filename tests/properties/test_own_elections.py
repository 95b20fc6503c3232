"""The leader's own elections, while brokers come and go: they elect whom the reference elects.

They come after each `ELECTION_S`. In one run the leader balances leaders, in another one it looks
for unclean elections, so that it is clear which of them a change comes from. A pass may change
`PASS_MAX` partitions here, so that few partitions take several passes.
"""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from controller.leader import periodic_elections
from metadata.codec import decode_records
from metadata.records import PartitionChangeRecord
from tests.properties.brokers_and_reference import (
    BROKERS,
    BrokersAndReference,
    lists,
    places,
)

ELECTION_S = 60.0
SOON_S = 20.0
"""No step takes longer. If an election is so near, it comes first."""
PASS_MAX = 2


class OwnElections(BrokersAndReference):
    """Brokers go and come back; leaders move, and partitions lose theirs."""

    @initialize(elr=st.booleans(), first=lists, second=lists, balances=st.booleans())
    def begin(self, elr: bool, first: Any, second: Any, balances: bool) -> None:
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr(periodic_elections, "PASS_MAX", PASS_MAX)
        self.balances = balances
        self._start(
            [None] * len(BROKERS),
            leader_balance_s=ELECTION_S if balances else 0.0,
            unclean_election_s=0.0 if balances else ELECTION_S,
        )
        self.election_at = ELECTION_S
        rows = [first, first, first, second]
        self.cluster.assign("t", *rows)
        self.machine.create("t", rows)
        if elr:
            self._switch_elr(True)

    @rule(rolled=st.lists(places.filter(bool), min_size=1, max_size=2))
    def roll(self, rolled: list[int]) -> None:
        """Brokers go and come back into every ISR. Their leaders are elsewhere now."""
        for place in rolled:
            broker = self.machine.partition(*self._place(place)).replicas[0]
            self.fence(broker)
            self._rest()
            self.unfence(broker)
            self._rest()
            self._catch_up()
        self._hold_elections()

    def _catch_up(self) -> None:
        """Every leader asks for the full ISR."""
        nodes = self.machine.nodes
        for name, topic in self.machine.topics.items():
            for number, each in enumerate(topic.partitions):
                if each.leader in self.agents:
                    alive = [b for b in each.replicas if b in nodes and nodes[b].active]
                    self._alter((name, number), each.leader, tuple(alive), {}, (0, 0), False)

    @rule(place=places.filter(bool), allowed=st.booleans())
    def strand(self, place: int, allowed: bool) -> None:
        """All replicas of a partition die, and it moves to brokers that live: nobody leads it."""
        found = self._place(place)
        dead = self.machine.partition(*found).replicas
        alive = tuple(
            number
            for number, node in self.machine.nodes.items()
            if node.active and not node.closed and number not in dead
        )
        if not alive:
            return
        self._allow_unclean(found[0], allowed)
        for broker in dead:
            self._rest()
            self.fence(broker)
        self._rest()
        self._reassign(found, alive)
        self._hold_elections()

    def _hold_elections(self) -> None:
        """Let time pass until the leader holds its elections, in passes of so many changes."""
        before = self.cluster.image.offset
        while self.cluster.world.now < self.election_at + 1.0:
            self._beat()
            self.cluster.run(2.0)
        self.election_at += ELECTION_S
        operation = "BalanceLeaders" if self.balances else "ElectLeaders"
        passes = [
            sum(isinstance(r, PartitionChangeRecord) for r in decode_records(batch.records))
            for batch in self.cluster.batches()
            if batch.header.base_offset >= before and batch.header.provenance.operation == operation
        ]
        changed = self.machine.balance() if self.balances else self.machine.scan()
        full, rest = divmod(changed, PASS_MAX)
        assert passes == [PASS_MAX] * full + [rest] * bool(rest)

    @invariant()
    def elections_come_in_time(self) -> None:
        if hasattr(self, "election_at") and self.election_at < self.cluster.world.now + SOON_S:
            self._hold_elections()

    def teardown(self) -> None:
        if hasattr(self, "patches"):
            self.patches.undo()
        super().teardown()


OwnElections.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=20,
)
TestOwnElections = OwnElections.TestCase


FOUND = {
    "a reassignment that could end waits for its broker": (
        ("fence", 4),
        ("strand", 5, True),
        ("stop", 1),
        ("fence", 3),
        ("fence", 2),
        ("unfence", 4),
    ),
    "an election looks only where a broker is there": (
        ("fence", 4),
        ("strand", 2, True),
        ("unregister", 3, True),
        ("roll", [2]),
    ),
}
"""Steps in which controller and reference once differed."""


@pytest.mark.parametrize("steps", FOUND.values(), ids=FOUND)
def test_controller_and_reference_once_differed_here(steps: tuple[tuple[Any, ...], ...]) -> None:
    machine: Any = OwnElections()
    machine.begin(elr=False, first=(1, 2, 5), second=(1, 2, 3), balances=False)
    try:
        for name, *arguments in steps:
            getattr(machine, name)(*arguments)
            machine.elections_come_in_time()
            machine.partitions_are_what_the_reference_says()
    finally:
        machine.teardown()
