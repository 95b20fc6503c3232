"""A request costs the same with ten brokers and ten thousand, with few partitions and with many.

The test counts operations and not time (`counted`). Each request goes the whole way through an
active controller: it is read, decided, written, replayed, committed and answered. What the
controller does by itself, such as fencing a silent broker, is counted too.

Rule: with a thousand times the brokers, or ten times the partitions, a request may cost half as
much again, and not more. Whose answer is about all brokers has no row here: see `ABOUT_ALL`.
`LOGBERG_PARTITIONS=1000000` asks for more partitions.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest

from controller.http.node_view import View
from controller.http.queries import list_features
from metadata.messages import WantedState
from metadata.records import (
    NO_LEADER,
    BrokerEndpoint,
    BrokerFeature,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.unit.controller.cluster import DECLARED, Broker, Cluster
from tests.unit.controller.counted import Counted, Counting, check

FEW_BROKERS, MANY_BROKERS = 10, 10_000
FEW, MANY = 10_000, int(os.environ.get("LOGBERG_PARTITIONS", "100000"))
IN_A_TOPIC = 100
OWN = 30
"""Partitions of the topic `own`. One broker, `Stage.last`, leads a third of them, and no others."""
FIRST_ID = 100

ABOUT_ALL = {
    "/v1/features": "lists what each broker supports, and describes it when its part is sent",
    "/v1/reassignments/plan": "asks each broker once how many replicas it holds",
    "/v1/brokers/{id}/explain of a stopping broker": "names each broker that it waits for",
}
"""What is said about all brokers costs as much as there are brokers."""


class Stage:
    """A leader, brokers that are online, and partitions on the first of them."""

    def __init__(self, brokers: int, partitions: int) -> None:
        # Nothing happens by itself: no session ends, and no checkpoint is written.
        self.cluster = Cluster(
            nodes=1, session_s=1e6, checkpoint_bytes=1 << 40, partition_mutations_per_s=0
        )
        self.brokers = [self._registered(FIRST_ID + number) for number in range(brokers)]
        for start in range(0, brokers, 1_000):
            records = [_record(broker) for broker in self.brokers[start : start + 1_000]]
            self.cluster.write(*records)
        self.first = [broker.broker_id for broker in self.brokers[:9]]
        self.last = self.brokers[-1].broker_id
        records = []
        for number in range(partitions // IN_A_TOPIC):
            # Metrics spell the names with '_', so the index of spellings grows too.
            records += _topic(f"topic.{number}", number + 1_000, IN_A_TOPIC, self.first)
            if len(records) > 5_000:
                self.cluster.write(*records)
                records = []
        self.cluster.write(*records, *_topic("own", 1, OWN, [self.last, *self.first[:2]]))
        for broker in self.brokers:
            self._at_end(broker)
            self.parts.heartbeats.touch(broker.broker_id, broker.epoch)
            self.parts.heartbeats.report(broker.broker_id, broker.epoch, broker.applied)
        self._next_id = FIRST_ID
        self._used = 0

    def without_leaders(self, partitions: int) -> "Stage":
        """Add topics whose only replica is on a broker that never came online."""
        absent = self.newcomer().register().broker_id
        for number in range(partitions // IN_A_TOPIC):
            topic_id = (1_000_000 + number).to_bytes(16, "big")
            alone = (absent,)
            self.cluster.write(
                TopicRecord(f"gone.{number}", topic_id),
                *(
                    PartitionRecord(n, topic_id, alone, alone, (), (), NO_LEADER, 0, 0)
                    for n in range(IN_A_TOPIC)
                ),
            )
        return self

    @property
    def parts(self) -> Any:
        return self.cluster.leader._leader

    @property
    def any_broker(self) -> Broker:
        return self.brokers[len(self.brokers) // 2]

    def _registered(self, broker_id: int) -> Broker:
        broker = Broker(self.cluster, broker_id, rack=f"r{broker_id % 3}", features=DECLARED)
        broker.epoch = 7
        return broker

    def _at_end(self, broker: Broker) -> Broker:
        """As if the broker had fetched and applied all there is."""
        broker.offset = broker.applied = self.cluster.leader.ledger.log_end
        broker.fetched_epoch = self.cluster.image.epoch
        return broker

    def newcomer(self, **registration: Any) -> Broker:
        """A broker that is not registered yet, and has an id below all others."""
        self._next_id -= 1
        broker = Broker(self.cluster, self._next_id, rack="r1", features=DECLARED, **registration)
        return self._at_end(broker)

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        status, reply = self.cluster.ask(method, path, body, query=query)
        assert status == 200, reply
        return reply

    def number(self) -> int:
        """A number that nobody has used."""
        self._used += 1
        return self._used

    def name(self) -> str:
        return f"new.{self.number()}"

    def create(self, **topic: Any) -> Any:
        topic = {"name": self.name(), "numPartitions": 1, "replicationFactor": 3} | topic
        return self.ask("POST", "/v1/topics", {"topics": [topic]})

    def fence(self, broker: Broker) -> None:
        """Let the leader find out that a broker is silent."""
        self.cluster.end_session(broker.broker_id)
        self.cluster.processes[1].run(self.parts.fencing._look)
        self.cluster.run_until(lambda: self.cluster.broker(broker.broker_id).fenced)


def _record(broker: Broker) -> RegisterBrokerRecord:
    """Return the registration of a broker that is online."""
    return RegisterBrokerRecord(
        broker.broker_id,
        broker.incarnation,
        broker.epoch,
        (BrokerEndpoint("PLAINTEXT", "localhost", 9092, 0),),
        tuple(BrokerFeature(*_levels(feature)) for feature in DECLARED),
        broker.registration.rack,
        False,
        log_dirs=(broker.broker_id.to_bytes(16, "little"),),
    )


def _levels(feature: Any) -> tuple[str, int, int]:
    return feature.name, feature.min_supported_version, feature.max_supported_version


def _topic(name: str, number: int, partitions: int, brokers: list[int]) -> list[Any]:
    topic_id = number.to_bytes(16, "big")
    records: list[Any] = [TopicRecord(name, topic_id)]
    for partition_id in range(partitions):
        replicas = tuple(brokers[(partition_id + n) % len(brokers)] for n in range(3))
        records.append(
            PartitionRecord(partition_id, topic_id, replicas, replicas, (), (), replicas[0], 0, 0)
        )
    return records


@pytest.fixture(scope="module")
def few() -> Stage:
    return Stage(FEW_BROKERS, FEW)


@pytest.fixture(scope="module")
def many_brokers() -> Stage:
    return Stage(MANY_BROKERS, FEW)


@pytest.fixture(scope="module")
def many_partitions() -> Stage:
    return Stage(FEW_BROKERS, MANY)


# -- what is asked: each prepares what it needs, and returns what is counted ---------------------


def heartbeat(stage: Stage) -> Counting:
    broker = stage._at_end(stage.any_broker)
    return lambda: broker.fetch(max_wait_ms=0)


def held_until_its_end(stage: Stage) -> Counting:
    replies = stage._at_end(stage.any_broker).send(max_wait_ms=500)
    # A wait ends up to a fifth earlier than it was asked for.
    stage.cluster.run(0.35)
    assert not replies
    return lambda: stage.cluster.run_until(lambda: bool(replies))


def held_and_woken(stage: Stage) -> Counting:
    replies = stage._at_end(stage.any_broker).send(max_wait_ms=1_500)

    def wake() -> None:
        stage.create()
        stage.cluster.run_until(lambda: bool(replies))
        assert replies[0].batches

    return wake


def register(stage: Stage) -> Counting:
    broker = stage.newcomer()
    return broker.register


def register_with_directories(stage: Stage) -> Counting:
    broker = stage.newcomer(log_dirs=[stage.cluster.world.random("directories").randbytes(16)])
    return broker.register


def register_anew(stage: Stage) -> Counting:
    """The next process of a broker that leads nothing."""
    broker = stage.newcomer().bring_online()
    stage.parts.heartbeats.forget(broker.broker_id)
    broker.epoch, broker.incarnation = -1, stage.cluster.world.random("next").randbytes(16)
    return broker.register


def come_online(stage: Stage) -> Counting:
    broker = stage._at_end(stage.newcomer().register())

    def beat() -> None:
        broker.fetch()
        stage.cluster.run_until(lambda: not stage.cluster.broker(broker.broker_id).fenced)

    return beat


def fall_silent(stage: Stage) -> Counting:
    broker = stage.newcomer().bring_online()
    return lambda: stage.fence(broker)


def stop(stage: Stage) -> Counting:
    """A broker that leads a partition: its leader moves, and the others must have seen that."""
    broker = stage.newcomer().bring_online()
    replicas = [broker.broker_id, *stage.first[:2]]
    stage.cluster.assign(stage.name(), replicas)
    heartbeats = stage.parts.heartbeats
    for other, contact in heartbeats._contacts.items():
        # All others have seen the move of the leader, as soon as it is there.
        heartbeats.report(other, contact.broker_epoch, 1 << 40)
    stage._at_end(broker)

    def go() -> None:
        for _ in range(20):
            if broker.fetch(WantedState.STOPPING, max_wait_ms=100).may_stop:
                return
        raise AssertionError("it may not stop")

    return go


def unregister(stage: Stage) -> Counting:
    broker = stage.newcomer().bring_online()
    return lambda: stage.ask("DELETE", f"/v1/brokers/{broker.broker_id}", force="true")


def delete(stage: Stage) -> Counting:
    name = stage.create()["topics"][0]["name"]
    return lambda: stage.ask("DELETE", "/v1/topics", {"names": [name]})


def add_partitions(stage: Stage) -> Counting:
    name = stage.create()["topics"][0]["name"]
    body = {"topics": [{"name": name, "count": 2}]}
    return lambda: stage.ask("POST", "/v1/partitions", body)


def alter_partition(stage: Stage) -> Counting:
    name = stage.name()
    stage.cluster.assign(name, stage.first[:3])
    key = stage.cluster.image.topics.named(name).topic_id, 0
    return lambda: stage.cluster.alter_isr(key, stage.first[:2])


def elect(stage: Stage) -> Counting:
    body = {
        "electionType": "PREFERRED",
        "topicPartitions": [{"topic": "own", "partitions": [0, 1]}],
    }
    return lambda: stage.ask("POST", "/v1/partitions/elect", body)


def balance(stage: Stage) -> Counting:
    """One partition has another leader than its preferred one."""
    name = stage.name()
    stage.cluster.assign(name, stage.first[:3])
    topic_id = stage.cluster.image.topics.named(name).topic_id
    changed = PartitionRecord(
        0, topic_id, tuple(stage.first[:3]), tuple(stage.first[:3]), (), (), stage.first[1], 1, 1
    )
    stage.cluster.write(changed)
    preferred = stage.parts.periodic_elections[0]

    def hold() -> None:
        stage.cluster.processes[1].run(preferred._pass)
        stage.cluster.run_until(lambda: stage.cluster.partition(name).leader == stage.first[0])

    return hold


def reassign(stage: Stage) -> Counting:
    name = stage.name()
    stage.cluster.assign(name, stage.first[1:2])
    body = {"partitions": [{"topic": name, "partition": 0, "replicas": stage.first[:1]}]}
    return lambda: stage.ask("POST", "/v1/reassignments", body)


def configs(resource_type: str, resource_name: str, key: str) -> Callable[[Stage], Counting]:
    def prepare(stage: Stage) -> Counting:
        # Another value each time, or nothing would change.
        resource = {
            "resourceType": resource_type,
            "resourceName": resource_name,
            "configs": [{"name": key, "value": str(2 + stage.number())}],
        }
        return lambda: stage.ask("PATCH", "/v1/configs", {"resources": [resource]})

    return prepare


def get(path: str, **query: str) -> Callable[[Stage], Counting]:
    def ask(stage: Stage) -> Counting:
        known = {"last": str(stage.last), "first": str(FIRST_ID)}
        filled = {name: value.format(**known) for name, value in query.items()}
        return lambda: stage.cluster.ask("GET", path.format(**known), query=filled)

    return ask


ASKED: dict[str, Callable[[Stage], Counting]] = {
    "heartbeat": heartbeat,
    "a held fetch ends": held_until_its_end,
    "a held fetch is woken by a change": held_and_woken,
    "register": register,
    "register with a directory": register_with_directories,
    "register the next process": register_anew,
    "come online": come_online,
    "fall silent": fall_silent,
    "stop": stop,
    "unregister": unregister,
    "create a topic": lambda stage: stage.create,
    "create a topic of 4": lambda stage: lambda: stage.create(numPartitions=4),
    "create an assigned topic": lambda stage: (
        lambda: stage.cluster.assign(stage.name(), stage.first[:3])
    ),
    "a dry run": lambda stage: (
        lambda: stage.ask(
            "POST", "/v1/topics", {"topics": [{"name": stage.name()}], "dryRun": True}
        )
    ),
    "delete a topic": delete,
    "add partitions": add_partitions,
    "alter an ISR": alter_partition,
    "elect": elect,
    "balance leaders": balance,
    "reassign": reassign,
    "a topic's config": configs("topic", "own", "retention.ms"),
    "the config of all brokers": configs("broker", "default", "min.insync.replicas"),
    "status": get("/v1/status"),
    "metrics": get("/metrics"),
    "ready": get("/health/ready"),
    "quorum": get("/v1/quorum"),
    "brokers": get("/v1/brokers", limit="5"),
    "a broker": get("/v1/brokers/{last}"),
    "why a broker": get("/v1/brokers/{last}/explain"),
    "topics": get("/v1/topics", limit="5"),
    "a topic": get("/v1/topics/own"),
    "partitions": get("/v1/partitions", limit="5"),
    "partitions that lack replicas": get("/v1/partitions", limit="5", underReplicated="true"),
    "reassignments": get("/v1/reassignments", limit="5"),
    "configs": get("/v1/configs", limit="5"),
    "a broker's configs": get("/v1/configs/broker/{last}"),
    "an export": get("/v1/export", limit="5"),
    "the loss of a broker": get("/v1/what-if/loss", brokers="{last}"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ASKED)
def test_a_request_costs_the_same_with_a_thousand_times_the_brokers(
    few: Stage, many_brokers: Stage, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    check(what, ASKED[what], few, many_brokers, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("what", ASKED)
def test_a_request_costs_the_same_with_very_many_partitions(
    few: Stage, many_partitions: Stage, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    check(what, ASKED[what], few, many_partitions, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["come online", "fall silent", "stop"])
def test_a_broker_does_not_look_at_the_leaderless_partitions_of_others(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    few = Stage(FEW_BROKERS, 0).without_leaders(IN_A_TOPIC)
    many = Stage(FEW_BROKERS, 0).without_leaders(FEW)
    check(what, ASKED[what], few, many, monkeypatch)


@pytest.mark.slow
def test_a_plan_asks_each_broker_once_however_many_replicas_move(
    many_brokers: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    plan = get("/v1/reassignments/plan", brokers="{last}")(many_brokers)
    with counted:
        plan()
    # For each broker a walk through `replicas_on`, but none for each replica that moves.
    assert MANY_BROKERS < counted.count < 30 * MANY_BROKERS


@pytest.mark.slow
def test_what_brokers_support_is_described_only_when_its_part_is_sent(
    many_brokers: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    view = View(many_brokers.cluster.image, None, None)
    with counted:
        answer = list_features(view, (1,))
    assert counted.count < 20 * MANY_BROKERS
    assert answer.length == len(list(answer.entries)) > MANY_BROKERS
