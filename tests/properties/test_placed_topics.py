"""Drawn topics whose replicas the controller places, over HTTP, on brokers that come and go.

Where they lie is up to chance. `tests.reference.placing` says whether the rules explain it. After
each step each partition's fields are compared, and each answer's code.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.properties.brokers_and_reference import (
    NOWHERE,
    brokers,
    places,
)
from tests.properties.directories_and_reference import DirectoriesAndReference

names = st.sampled_from(["p", "q", "r"])
some_racks = st.lists(st.sampled_from([None, "a", "b"]), min_size=5, max_size=5)
racks = some_racks | some_racks | st.just([None] * 5)


class PlacedTopics(DirectoriesAndReference):
    """Topics are created, grow, and go."""

    @initialize(racks=racks)
    def begin(self, racks: Any) -> None:
        self._start(racks, leader_balance_s=0.0, unclean_election_s=0.0)
        self.create_placed("p", 3, 3)

    @rule(
        name=names,
        factor=st.sampled_from([-1, 0, 1, 2, 2, 3, 3, 4, 5, 6]),
        count=st.sampled_from([1, 2, 3, 4, 5, 10]),
    )
    def create_placed(self, name: str, factor: int, count: int) -> None:
        topic = {"name": name, "numPartitions": count, "replicationFactor": factor}
        self._ask(
            "POST",
            "/v1/topics",
            {"topics": [topic]},
            lambda: self.machine.create_placed(
                name, 3 if factor == -1 else factor, self._found(name)
            ),
        )

    @rule(broker=brokers, name=names, factor=st.sampled_from([3, 4, 5]))
    def create_while_one_stops(self, broker: int, name: str, factor: int) -> None:
        """A broker in controlled shutdown gets no new replicas."""
        self.stop(broker)
        self._rest()
        self.delete(name)
        self.create_placed(name, factor, 5)

    @rule(name=names, count=st.integers(1, 12))
    def add_placed(self, name: str, count: int) -> None:
        body = {"topics": [{"name": name, "count": count}]}
        self._ask(
            "POST",
            "/v1/partitions",
            body,
            lambda: self.machine.add_placed(name, count, self._found(name)),
        )

    def _found(self, name: str) -> list[tuple[int, ...]]:
        """Return the replicas that the controller has written for a topic."""
        topics = self.cluster.image.topics
        known = topics.named(name)
        if known is None:
            return []
        keys = ((known.topic_id, number) for number in topics.ids_of(known.topic_id))
        return [topics.partitions[key].replicas for key in keys]

    @rule(
        place=places, number=st.integers(0, 2), broker=brokers, letters=st.sampled_from(["", "ab"])
    )
    def move(self, place: int, number: int, broker: int, letters: str) -> None:
        """One replica goes to another broker, which may be cordoned."""
        self.cordon(broker, letters)
        found = self._place(place)
        if found == NOWHERE:
            return
        replicas = self.machine.partition(*found).replicas
        if broker not in replicas:
            number %= len(replicas)
            self._reassign(found, (*replicas[:number], broker, *replicas[number + 1 :]))

    @rule(name=names)
    def delete(self, name: str) -> None:
        self._ask("DELETE", "/v1/topics", {"names": [name]}, lambda: self.machine.delete(name))


PlacedTopics.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=30,
)
TestPlacedTopics = PlacedTopics.TestCase
