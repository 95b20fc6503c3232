"""Drawn requests and events on a controller, over HTTP: partitions are what the reference says.

`tests.reference.replicas` has the rules once more, written from the spec. After each step each
partition's fields are compared, and each answer's code.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.properties.brokers_and_reference import (
    BROKERS,
    NOWHERE,
    brokers,
    lists,
    moves,
    places,
    rarely,
)
from tests.properties.directories_and_reference import DirectoriesAndReference

TOPICS = ("t", "u")
some = st.lists(brokers, max_size=4).map(tuple)


class PartitionsAndBrokers(DirectoriesAndReference):
    """Requests about topics and partitions."""

    @initialize(
        elr=st.booleans(),
        first=lists,
        second=lists,
    )
    def begin(self, elr: bool, first: Any, second: Any) -> None:
        self._start([None] * len(BROKERS), leader_balance_s=0.0, unclean_election_s=0.0)
        self.cluster.assign("t", first, second)
        self.machine.create("t", [first, second])
        if elr:
            self._switch_elr(True)

    # -- topics, configs and levels ----------------------------------------------------------

    @rule(name=st.sampled_from(TOPICS), rows=st.lists(lists, min_size=1, max_size=2))
    def create(self, name: str, rows: Any) -> None:
        assigned = [{"partitionIndex": n, "brokerIds": row} for n, row in enumerate(rows)]
        body = {"topics": [{"name": name, "assignments": assigned}]}
        self._ask("POST", "/v1/topics", body, lambda: self.machine.create(name, rows))

    @rule(name=st.sampled_from(TOPICS), count=st.integers(1, 3), rows=st.lists(lists, max_size=2))
    def add_partitions(self, name: str, count: int, rows: Any) -> None:
        body = {"topics": [{"name": name, "count": count, "assignments": rows}]}
        self._ask(
            "POST",
            "/v1/partitions",
            body,
            lambda: self.machine.add_partitions(name, count, list(rows)),
        )

    @rule(name=st.just("u"), really=rarely)
    def delete(self, name: str, really: bool) -> None:
        if not really:
            return
        body = {"names": [name]}
        self._ask("DELETE", "/v1/topics", body, lambda: self.machine.delete(name))

    @rule(name=st.sampled_from(TOPICS), value=st.sampled_from([None, 1, 2, 3]))
    def min_isr(self, name: str, value: int | None) -> None:
        if name in self.machine.topics:
            self._configure(name, "min.insync.replicas", value)
            self.machine.set_min_isr(name, value)

    @rule(name=st.sampled_from(TOPICS), value=st.booleans())
    def unclean(self, name: str, value: bool) -> None:
        if name in self.machine.topics:
            self._allow_unclean(name, value)

    @rule(on=st.booleans(), really=rarely)
    def switch_elr(self, on: bool, really: bool) -> None:
        if really:
            self._switch_elr(on)

    # -- partitions --------------------------------------------------------------------------

    @rule(place=places, who=st.sampled_from(["all", "all", "itself", "one", "new", "dead"]))
    def catch_up(self, place: int, who: str) -> None:
        """The leader names who is in sync: all that live (or all), itself, one more, the added."""
        found = self._place(place, moves if who in ("all", "new") else None)
        if found == NOWHERE:
            return
        now = self.machine.partition(*found)
        if now.leader not in self.agents:
            return
        alive = [b for b, node in self.machine.nodes.items() if node.active]
        others = [b for b in now.replicas if b != now.leader and (b in alive or who == "dead")]
        if who == "new":
            others = [b for b in others if b in now.adding]
        isr = (now.leader, *others[: {"itself": 0, "one": 1}.get(who)])
        if now.recovering:
            self._alter(found, now.leader, (now.leader,), {}, (0, 0), False)
        self._alter(found, now.leader, isr, {}, (0, 0), False)

    @rule(place=places, broker=brokers)
    def swap(self, place: int, broker: int) -> None:
        """One replica moves to another broker."""
        found = self._place(place)
        if found != NOWHERE and broker not in self.machine.partition(*found).replicas:
            self._reassign(found, (broker, *self.machine.partition(*found).replicas[1:]))

    @rule(
        place=places,
        isr=some | lists,
        who=st.sampled_from(["leader", "leader", 1, 2]),
        off=st.sampled_from([(0, 0), (0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]),
        member_off=st.sampled_from([None, 0, 1]),
        recovering=rarely,
    )
    def alter(
        self, place: int, isr: Any, who: Any, off: Any, member_off: Any, recovering: bool
    ) -> None:
        """Anybody asks for anything."""
        found = self._place(place)
        leader = -1 if found == NOWHERE else self.machine.partition(*found).leader
        caller = leader if who == "leader" else who
        if caller in self.agents:
            epochs = {
                b: self.machine.nodes[b].epoch + member_off
                for b in isr
                if member_off is not None and b in self.machine.nodes
            }
            self._alter(found, caller, isr, epochs, off, recovering)

    @rule(place=places, broker=st.sampled_from([2, 4]))
    def lose(self, place: int, broker: int) -> None:
        """A replica's directory fails, and its leader still counts it as in sync."""
        found = self._place(place, lambda p: broker in p.replicas)
        node, name = self.machine.nodes.get(broker), f"{broker}a"
        if found == NOWHERE or node is None or not node.active or len(node.directories) < 2:
            return
        if broker in self.machine.partition(*found).replicas:
            self._assign(broker, name, found)
            self._fail(name)
            self.catch_up(place, "all")
            now = self.machine.partition(*found)
            if now.leader in self.agents:
                self._alter(found, now.leader, (now.leader, broker), {}, (0, 0), False)

    @rule(place=places, preferred=st.booleans())
    def elect(self, place: int, preferred: bool) -> None:
        found_place = self._place(place, lambda p: p.leader != p.replicas[0])
        body = {
            "electionType": "PREFERRED" if preferred else "UNCLEAN",
            "topicPartitions": [{"topic": found_place[0], "partitions": [found_place[1]]}],
        }
        _, reply = self.cluster.ask("POST", "/v1/partitions/elect", body)
        found = reply["replicaElectionResults"][0]["partitionResult"][0]
        self._same(lambda: self.machine.elect(found_place, preferred=preferred), found["error"])

    @rule(place=places, replicas=lists | lists | some)
    def reassign(self, place: int, replicas: Any) -> None:
        self._reassign(self._place(place), replicas)

    @rule(place=places, moving=st.booleans())
    def cancel(self, place: int, moving: bool) -> None:
        self._reassign(self._place(place, moves if moving else None), None)


PartitionsAndBrokers.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=30,
)
TestPartitionsAndBrokers = PartitionsAndBrokers.TestCase
