"""Brokers of a controlled cluster beside the reference machine: a part of stateful tests.

A broker registers, comes online, is fenced, and stops. It stays alive by its heartbeats. After each
step each partition's fields are compared.
"""

from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from metadata.features import ELR_VERSION
from metadata.messages import SeenState, WantedState
from metadata.records import DIRECTORY_UNASSIGNED
from metadata.uuids import uuid_text
from tests.reference.replicas import UNASSIGNED, Machine, Node, Refused
from tests.unit.controller.cluster import CLUSTER_ID, DECLARED, SESSION_S, Broker, Cluster

BROKERS = (1, 2, 3, 4, 5)
NOWHERE = ("t", 99)
"""A partition that is not there."""
brokers = st.sampled_from(BROKERS)
places = st.integers(0, 12)
"""Which of the partitions that are there; 0: one that is not."""
lists = st.lists(brokers, min_size=3, max_size=3, unique=True).map(tuple)
"""The replicas of a partition."""
rarely = st.sampled_from([True] + [False] * 4)


class BrokersAndReference(RuleBasedStateMachine):
    """One controller and five brokers beside the reference machine."""

    def _start(self, racks: list[str | None], **config: Any) -> None:
        """Begin with all brokers online, at a level at which directories can be cordoned."""
        self.racks = dict(zip(BROKERS, racks, strict=True))
        levels = {"metadata.version": 30, ELR_VERSION: 0}
        self.cluster: Any = Cluster(
            nodes=1, min_insync_replicas=2, initial_features=levels, **config
        )
        self.machine = Machine(min_isr=2)
        self.agents: dict[int, Broker] = {}
        for broker in BROKERS:
            self._register(broker, clean=False)
            self._unfence(broker)

    # -- brokers -----------------------------------------------------------------------------

    def _register(self, broker: int, *, clean: bool, cordoned: bool = False) -> None:
        names, rack = directories_of(broker), self.racks[broker]
        log_dirs = tuple(map(directory_id, names))
        agent = Broker(self.cluster, broker, rack, features=DECLARED, log_dirs=log_dirs)
        if cordoned:
            agent.registration = msgspec.structs.replace(
                agent.registration, cordoned_log_dirs=tuple(map(uuid_text, log_dirs))
            )
        if clean and broker in self.machine.nodes:
            agent.registration = msgspec.structs.replace(
                agent.registration, previous_broker_epoch=self.machine.nodes[broker].epoch
            )
        self.agents[broker] = agent.register()
        node = Node(agent.epoch, names, rack=rack, cordoned=names if cordoned else ())
        self.machine.register(broker, node, clean=clean)

    def _unfence(self, broker: int) -> None:
        agent = self.agents[broker]
        for _ in range(10):
            if agent.fetch(WantedState.ONLINE).state is SeenState.ONLINE:
                break
            self.cluster.run(0.01)
        self.machine.unfence(broker)

    def _beat(self) -> None:
        """Each broker's process says what it is, so that no session ends."""
        for broker, node in self.machine.nodes.items():
            wanted = WantedState.FENCED if node.fenced else WantedState.ONLINE
            if broker in self.agents:
                self.agents[broker].fetch(wanted)
        self.cluster.run(0.02)

    def _rest(self) -> None:
        """Let what has begun come to its end."""
        self._beat()
        self.cluster.run(0.05)

    @rule(broker=brokers)
    def fence(self, broker: int) -> None:
        node = self.machine.nodes.get(broker)
        if node is not None and node.active:
            self.agents[broker].fetch(WantedState.FENCED)
            self.machine.fence(broker)

    @rule(broker=brokers)
    def unfence(self, broker: int) -> None:
        node = self.machine.nodes.get(broker)
        if node is not None and node.fenced and not node.stopping and broker in self.agents:
            self._unfence(broker)

    @rule(broker=brokers)
    def stop(self, broker: int) -> None:
        node = self.machine.nodes.get(broker)
        if node is None or not node.active:
            return
        self.machine.stop(broker)
        agent = self.agents.pop(broker)
        for _ in range(20):
            if agent.fetch(WantedState.STOPPING).may_stop:
                return
            self._beat()
        raise AssertionError(f"broker {broker} may not stop")

    @rule(broker=brokers, clean=st.booleans(), cordoned=rarely)
    def restart(self, broker: int, clean: bool, cordoned: bool) -> None:
        """A new process, of a broker that was unregistered, or that has stopped, or now dies."""
        node = self.machine.nodes.get(broker)
        if node is not None and broker in self.agents:
            if not node.fenced:
                return
            self.agents.pop(broker)
            until = self.cluster.world.now + SESSION_S + 1
            while self.cluster.world.now < until:
                self._beat()
                self.cluster.run(2.0)
        self._register(broker, clean=clean, cordoned=cordoned)

    @rule(broker=brokers, really=rarely)
    def unregister(self, broker: int, really: bool) -> None:
        if not really and broker in self.machine.nodes:
            return
        status, reply = self.cluster.ask("DELETE", f"/v1/brokers/{broker}", query={"force": "true"})
        self._same(lambda: self.machine.unregister(broker), reply if status != 200 else None)
        self.agents.pop(broker, None)

    # -- places ----------------------------------------------------------------------------

    def _place(self, number: int, rather: Any = None) -> tuple[str, int]:
        """Return a partition: one that meets the condition, if there is one."""
        known = [
            (name, index)
            for name, topic in self.machine.topics.items()
            for index in range(len(topic.partitions))
        ]
        if rather is not None:
            known = [place for place in known if rather(self.machine.partition(*place))] or known
        return known[number % len(known)] if number and known else NOWHERE

    # -- requests that several tests send ---------------------------------------------------

    def _alter(
        self, place: Any, caller: int, isr: Any, epochs: Any, off: Any, recovering: bool
    ) -> None:
        now = None if place == NOWHERE else self.machine.partition(*place)
        leader_epoch = off[0] + (now.leader_epoch if now else 0)
        epoch = off[1] + (now.epoch if now else 0)
        wanted = {
            "partitionIndex": place[1],
            "leaderEpoch": leader_epoch,
            "partitionEpoch": epoch,
            "newIsrWithEpochs": [{"brokerId": b, "brokerEpoch": epochs.get(b, -1)} for b in isr],
            "leaderRecoveryState": int(recovering),
        }
        body = {
            "clusterId": CLUSTER_ID,
            "brokerId": caller,
            "brokerEpoch": self.agents[caller].epoch,
            "topics": [{"topicName": place[0], "partitions": [wanted]}],
        }
        if min(leader_epoch, epoch) < 0:
            return
        status, reply = self.cluster.ask("POST", "/v1/partitions/alter", body)
        error = reply if status != 200 else reply["topics"][0]["partitions"][0]["error"]
        self._same(
            lambda: self.machine.alter(
                caller,
                self.agents[caller].epoch,
                place,
                leader_epoch,
                epoch,
                isr,
                epochs,
                recovering=recovering,
            ),
            error,
        )

    def _reassign(self, place: tuple[str, int], replicas: Any) -> None:
        body = {"partitions": [{"topic": place[0], "partition": place[1], "replicas": replicas}]}
        self._ask(
            "POST",
            "/v1/reassignments",
            body,
            lambda: (
                self.machine.cancel(place)
                if replicas is None
                else self.machine.reassign(place, replicas)
            ),
        )

    def _configure(self, name: str, key: str, value: Any) -> None:
        change: dict[str, Any] = {"name": key, "operation": "delete"}
        if value is not None:
            change = {"name": key, "operation": "set", "value": str(value)}
        status, reply = self.cluster.ask(
            "PATCH", f"/v1/configs/topic/{name}", {"configs": [change]}
        )
        assert status == 200, reply

    def _allow_unclean(self, name: str, value: bool) -> None:
        text = str(value).lower()
        self._configure(name, "unclean.leader.election.enable", text)
        self.machine.set_unclean(name, value)

    def _switch_elr(self, on: bool) -> None:
        if on == self.machine.elr:
            return
        kind = "upgrade" if on else "safe_downgrade"
        update = {"feature": ELR_VERSION, "maxVersionLevel": int(on), "upgradeType": kind}
        self._ask(
            "POST", "/v1/features", {"updates": [update]}, lambda: self.machine.switch_elr(on)
        )

    # -- comparing ---------------------------------------------------------------------------

    def _ask(self, method: str, path: str, body: Any, expected: Any) -> None:
        status, reply = self.cluster.ask(method, path, body)
        self._same(expected, reply if status != 200 else None)

    def _same(self, expected: Any, error: Any) -> None:
        """Check that the reference answers with the same code; None: it accepts."""
        try:
            expected()
            code = None
        except Refused as refused:
            code = str(refused)
        assert (None if error is None else error["code"]) == code, error

    @invariant()
    def partitions_are_what_the_reference_says(self) -> None:
        if not hasattr(self, "machine"):
            return
        self._rest()
        image = self.cluster.image
        seen = {
            broker.broker_id: (broker.broker_epoch, broker.fenced, broker.in_controlled_shutdown)
            for broker in image.cluster.brokers.values()
        }
        assert seen == {b: (n.epoch, n.fenced, n.stopping) for b, n in self.machine.nodes.items()}
        assert sorted(image.topics.names) == sorted(self.machine.topics)
        for name, topic in self.machine.topics.items():
            topic_id = image.topics.named(name).topic_id
            assert list(image.topics.ids_of(topic_id)) == list(range(len(topic.partitions)))
            for number, wanted in enumerate(topic.partitions):
                found = ours(image.topics.partitions[topic_id, number])
                assert found == reference(wanted), f"{name}-{number}: {found}, {wanted}"

    def teardown(self) -> None:
        if hasattr(self, "machine"):
            self.cluster.assert_equal()


def directories_of(broker: int) -> tuple[str, ...]:
    """Odd brokers have one directory, even ones two."""
    return tuple(f"{broker}{letter}" for letter in "ab"[: 2 - broker % 2])


def directory_id(name: str) -> bytes:
    return name.encode() * 8


def moves(p: Any) -> bool:
    return bool(p.adding or p.removing)


def ours(p: Any) -> tuple[Any, ...]:
    """Return the fields of a partition. The ELR is a set."""
    ids = (p.replicas, p.isr, p.leader, set(p.elr), p.last_known_elr, p.removing, p.adding)
    where = tuple(
        UNASSIGNED if each == DIRECTORY_UNASSIGNED else each[:2].decode() for each in p.directories
    )
    return (*ids, bool(p.leader_recovery_state), p.leader_epoch, p.partition_epoch, where)


def reference(p: Any) -> tuple[Any, ...]:
    ids = (p.replicas, p.isr, p.leader, set(p.elr), p.last_known, p.removing, p.adding)
    return (*ids, p.recovering, p.leader_epoch, p.epoch, p.directories)
