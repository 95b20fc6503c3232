"""Brokers whose directories fail or are cordoned: a part of stateful tests."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from metadata.messages import WantedState
from metadata.uuids import uuid_text
from tests.properties.brokers_and_reference import (
    NOWHERE,
    BrokersAndReference,
    brokers,
    directory_id,
    places,
)
from tests.unit.controller.cluster import CLUSTER_ID

MANY = frozenset(("2a", "2b", "4a", "4b"))
"""The directories of brokers that have two."""


class DirectoriesAndReference(BrokersAndReference):
    """What a broker says of its directories."""

    @rule(place=places, broker=brokers, known=st.booleans())
    def fail(self, place: int, broker: int, known: bool) -> None:
        """A directory fails: one that a replica is known to lie on, or a broker's first."""
        found = self._place(place, lambda p: bool(MANY.intersection(p.directories)))
        name = f"{broker}a"
        if known and found != NOWHERE:
            here = MANY.intersection(self.machine.partition(*found).directories)
            name = min(here, default=name)
        node = self.machine.nodes.get(int(name[0]))
        if node is None or not node.active or name not in node.directories:
            return
        self._fail(name)

    def _fail(self, name: str) -> None:
        failed = (uuid_text(directory_id(name)),)
        self.agents[int(name[0])].fetch(WantedState.ONLINE, offline_log_dirs=failed)
        self.cluster.run(0.1)
        self.machine.fail(int(name[0]), name)

    @rule(broker=brokers, letters=st.sampled_from(["", "a", "b", "ab", "ab"]))
    def cordon(self, broker: int, letters: str) -> None:
        """A broker says which of its directories take no new replicas."""
        node = self.machine.nodes.get(broker)
        if node is None or node.stopping or broker not in self.agents:
            return
        names = tuple(name for name in node.directories if name[1] in letters)
        self.agents[broker].fetch(
            WantedState.FENCED if node.fenced else WantedState.ONLINE,
            cordoned_log_dirs=tuple(uuid_text(directory_id(name)) for name in names),
        )
        self.cluster.run(0.1)
        self.machine.cordon(broker, names)

    @rule(broker=st.sampled_from([2, 4, 2, 4, 1]), letter=st.sampled_from("ab"), place=places)
    def assign(self, broker: int, letter: str, place: int) -> None:
        node = self.machine.nodes.get(broker)
        name = f"{broker}{letter}"
        found = self._place(place, lambda p: broker in p.replicas)
        if node is not None and name in node.directories and found != NOWHERE:
            self._assign(broker, name, found)

    def _assign(self, broker: int, name: str, found: tuple[str, int]) -> None:
        node = self.machine.nodes[broker]
        topic_id = self.cluster.image.topics.named(found[0]).topic_id
        replica = {
            "topicId": uuid_text(topic_id),
            "partition": found[1],
            "directory": uuid_text(directory_id(name)),
        }
        body = {"clusterId": CLUSTER_ID, "brokerEpoch": node.epoch, "replicas": [replica]}
        status, reply = self.cluster.ask("POST", f"/v1/brokers/{broker}/directories", body)
        error = reply if status != 200 else reply["replicas"][0].get("error")
        self._same(lambda: self.machine.assign(broker, found, name), error)
