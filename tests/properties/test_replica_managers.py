"""Drawn requests and events on a controller, over HTTP: partitions are what the reference says.

`tests.reference.replicas` has the rules once more, written from the spec. After each step each
partition's fields are compared, and each answer's code. Brokers stay alive by their heartbeats.
"""

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from metadata.features import ELR_VERSION
from metadata.messages import SeenState, WantedState
from metadata.records import DIRECTORY_UNASSIGNED
from metadata.uuids import uuid_text
from tests.reference.replicas import UNASSIGNED, Machine, Refused
from tests.unit.controller.cluster import CLUSTER_ID, DECLARED, SESSION_S, Broker, Cluster

BROKERS = (1, 2, 3, 4, 5)
TOPICS = ("t", "u")
NOWHERE = ("t", 99)
"""A partition that is not there."""
MANY = frozenset(("2a", "2b", "4a", "4b"))
"""The directories of brokers that have two."""
brokers = st.sampled_from(BROKERS)
places = st.integers(0, 12)
"""Which of the partitions that are there; 0: one that is not."""
rarely = st.sampled_from([True] + [False] * 4)
lists = st.lists(brokers, min_size=3, max_size=3, unique=True).map(tuple)
some = st.lists(brokers, max_size=4).map(tuple)


class PartitionsAndBrokers(RuleBasedStateMachine):
    """One controller and five brokers beside the reference machine."""

    @initialize(elr=st.booleans(), first=lists, second=lists)
    def begin(self, elr: bool, first: Any, second: Any) -> None:
        self.cluster: Any = Cluster(nodes=1, min_insync_replicas=2)
        self.machine = Machine(min_isr=2)
        self.agents: dict[int, Broker] = {}
        for broker in BROKERS:
            self._register(broker, clean=False)
            self._unfence(broker)
        level = {"feature": "metadata.version", "maxVersionLevel": 30, "upgradeType": "upgrade"}
        assert self.cluster.ask("POST", "/v1/features", {"updates": [level]})[0] == 200
        self.cluster.assign("t", first, second)
        self.machine.create("t", [first, second])
        if elr:
            self._switch_elr(True)

    # -- brokers -----------------------------------------------------------------------------

    def _register(self, broker: int, *, clean: bool) -> None:
        # Odd brokers have one directory, even ones two.
        names = tuple(f"{broker}{letter}" for letter in "ab"[: 2 - broker % 2])
        log_dirs = tuple(map(directory_id, names))
        agent = Broker(self.cluster, broker, features=DECLARED, log_dirs=log_dirs)
        if clean and broker in self.machine.nodes:
            agent.registration = msgspec.structs.replace(
                agent.registration, previous_broker_epoch=self.machine.nodes[broker].epoch
            )
        self.agents[broker] = agent.register()
        self.machine.register(broker, agent.epoch, names, clean=clean)

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

    @rule(broker=brokers, clean=st.booleans())
    def restart(self, broker: int, clean: bool) -> None:
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
        self._register(broker, clean=clean)

    @rule(broker=brokers, really=rarely)
    def unregister(self, broker: int, really: bool) -> None:
        if not really and broker in self.machine.nodes:
            return
        status, reply = self.cluster.ask("DELETE", f"/v1/brokers/{broker}", query={"force": "true"})
        self._same(lambda: self.machine.unregister(broker), reply if status != 200 else None)
        self.agents.pop(broker, None)

    # -- directories -------------------------------------------------------------------------

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
        failed = (uuid_text(directory_id(name)),)
        self.agents[int(name[0])].fetch(WantedState.ONLINE, offline_log_dirs=failed)
        self.cluster.run(0.1)
        self.machine.fail(int(name[0]), name)

    @rule(broker=st.sampled_from([2, 4, 2, 4, 1]), letter=st.sampled_from("ab"), place=places)
    def assign(self, broker: int, letter: str, place: int) -> None:
        node = self.machine.nodes.get(broker)
        name = f"{broker}{letter}"
        found = self._place(place, lambda p: broker in p.replicas)
        if node is None or name not in node.directories or found == NOWHERE:
            return
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
            text = str(value).lower()
            self._configure(name, "unclean.leader.election.enable", text)
            self.machine.set_unclean(name, value)

    def _configure(self, name: str, key: str, value: Any) -> None:
        change: dict[str, Any] = {"name": key, "operation": "delete"}
        if value is not None:
            change = {"name": key, "operation": "set", "value": str(value)}
        status, reply = self.cluster.ask(
            "PATCH", f"/v1/configs/topic/{name}", {"configs": [change]}
        )
        assert status == 200, reply

    @rule(on=st.booleans(), really=rarely)
    def switch_elr(self, on: bool, really: bool) -> None:
        if really:
            self._switch_elr(on)

    def _switch_elr(self, on: bool) -> None:
        if on == self.machine.elr:
            return
        kind = "upgrade" if on else "safe_downgrade"
        update = {"feature": ELR_VERSION, "maxVersionLevel": int(on), "upgradeType": kind}
        self._ask(
            "POST", "/v1/features", {"updates": [update]}, lambda: self.machine.switch_elr(on)
        )

    # -- partitions --------------------------------------------------------------------------

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
        self._beat()
        self.cluster.run(0.05)
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
                assert ours(image.topics.partitions[topic_id, number]) == reference(wanted)

    def teardown(self) -> None:
        if hasattr(self, "machine"):
            self.cluster.assert_equal()


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


PartitionsAndBrokers.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=30,
)
TestPartitionsAndBrokers = PartitionsAndBrokers.TestCase
