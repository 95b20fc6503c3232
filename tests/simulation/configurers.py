"""Administrators who alter configs and read them, and what they may be told.

Rule: an answer names an offset, and the log at that offset is the witness, as for other clients.
What a config's value is there is computed here, from the records alone and apart from the product.

- C1: an acknowledged change is in the log once, at the offset that it was told, and did what was
  asked, seen from the state before it. A refused one is not there.
- C2: a read was told the effective values and sources at its offset.
- C3: offsets never contradict the order of calls and answers.
- C4: no partition recovers from an unclean election that its configs forbade.
- C5: at rest, no partition is without a leader while it could have one.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from ledger.reader import LedgerReader
from metadata.codec import decode_records
from metadata.features import ELR_VERSION
from metadata.records import (
    BeginEpochRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from metadata.uuids import parse_uuid, uuid7, uuid_text
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.checkers.history import CREATE

TOPIC, BROKER = 2, 4
NAMES = {TOPIC: "topic", BROKER: "broker"}
TOPICS = ("config-a", "config-b", "config-c")
UNCLEAN, MIN_ISR, RETENTION = (
    "unclean.leader.election.enable",
    "min.insync.replicas",
    "retention.ms",
)
SYNONYMS = {UNCLEAN: UNCLEAN, MIN_ISR: MIN_ISR, RETENTION: "log.retention.ms"}
"""A topic's keys that are altered here, and the brokers' keys that set their defaults."""
DEFAULTS = {UNCLEAN: "false", MIN_ISR: "1", RETENTION: "604800000"}
VALUES = {UNCLEAN: ("true", "false"), MIN_ISR: ("1", "2", "3"), RETENTION: ("5", "6", "bad")}
ALTERS_PER_S, READS_PER_S = 5.0, 3.0
TRIES = 12
Configs = dict[tuple[int, str], dict[str, str]]


@dataclass
class Asked:
    """One change or read, through all its tries."""

    request_id: str
    call: int
    resource: tuple[int, str]
    key: str = ""
    value: str | None = None
    """None: the key is deleted."""
    tries: int = 0
    back: int | None = None
    offset: int | None = None
    code: str = ""
    changed: list[str] = field(default_factory=list)
    told: dict[str, tuple[str, str]] | None = None
    """What a read was told: value and source by key."""


class Configurers:
    """Idle unless the shape asks for them."""

    def __init__(self, cluster: Any, host_id: int) -> None:
        self.cluster, self.host_id = cluster, host_id
        self.asked: list[Asked] = []
        self.facts: Counter[str] = Counter()
        self._tick = 0
        self._elr = False
        """While the log is read: whether ELR is on there."""
        self._there: set[str] = set()

    @property
    def own(self) -> dict[str, str]:
        """The controllers' own settings."""
        if not self.cluster.shape.replicated:
            return {}
        unclean = str(self.cluster.seed % 3 == 0).lower()
        return {MIN_ISR: "2"} | ({UNCLEAN: unclean} if unclean == "true" else {})

    def _effective(self, configs: Configs, name: str, key: str, node: int) -> tuple[str, str]:
        return effective(configs, name, key, node, self.own, elr=self._elr)

    def start(self) -> None:
        world = self.cluster.world
        self.dice = world.random("configurers")
        host = SimulatedHost(world, self.cluster.network, self.host_id)
        self.process = host.boot()
        caller = Caller("User:configurer", "token", "10.0.0.10")
        self.requests = self.cluster.requests_of(host, caller)
        self._plan(1.0, self._create)
        self._plan(ALTERS_PER_S, self._alter)
        self._plan(READS_PER_S, self._read)

    def _plan(self, rate: float, act: Any) -> None:
        def go() -> None:
            if self.cluster.busy:
                act()
            delay = int(self.dice.expovariate(rate) * US)
            self.process.schedule(delay, go, "configurer")

        self.process.schedule(0, go, "configurer")

    def _next(self) -> int:
        self._tick += 1
        return self._tick

    def _id(self) -> str:
        wall = self.process.clock.wall_ms()
        return uuid_text(uuid7(wall, self.dice.getrandbits(74)))

    def _send(self, method: str, path: str, body: Any, request_id: str, take: Any) -> None:
        leader = self.cluster.leader()
        if leader is None or self.dice.random() < 0.1:
            leader = self.dice.choice(list(self.cluster.hosts))
        headers = {"content-type": "application/json", "x-logberg-request-id": request_id}
        request = Request(method, path, b"" if body is None else json.dumps(body).encode())
        request = Request(method, path, request.body, headers=headers)
        self.requests.request(f"http://controller-{leader}", request, take, 2.0)

    # -- topics -------------------------------------------------------------------------------

    def _create(self) -> None:
        missing = [name for name in TOPICS if name not in self._there]
        if not missing:
            return
        name, request_id = missing[0], self._id()
        operation = self.cluster.answers.asked(
            CREATE, "configurer", topic=name, request_id=parse_uuid(request_id).hex()
        )
        topic = {"name": name, "numPartitions": 2, "replicationFactor": 2}

        def answered(answer: Reply | Unreachable) -> None:
            if not isinstance(answer, Reply):
                return
            reply = json.loads(answer.body)
            if answer.status == 200:
                self._there.add(name)
                self.cluster.answers.changed(operation, reply)
            elif reply["code"] == "TOPIC_ALREADY_EXISTS":
                # An earlier try of ours, whose answer was lost.
                self._there.add(name)
                self.cluster.answers.refused(operation, reply["code"])
            elif answer.status == 400:
                self.cluster.answers.refused(operation, reply["code"])

        self._send("POST", "/v1/topics", {"topics": [topic]}, request_id, answered)

    # -- configs ------------------------------------------------------------------------------

    def _alter(self) -> None:
        kind = self.dice.choice((TOPIC, TOPIC, BROKER))
        name = self.dice.choice(TOPICS)
        if kind == BROKER:
            name = self.dice.choice(("", "", *map(str, self.cluster.hosts)))
        elif name not in self._there:
            return
        key = self.dice.choice(list(VALUES))
        value = self.dice.choice((None, *VALUES[key]))
        if kind == BROKER:
            key = SYNONYMS[key]
        asked = Asked(self._id(), self._next(), (kind, name), key, value)
        self.asked.append(asked)
        self._try(asked)

    def _try(self, asked: Asked) -> None:
        asked.tries += 1
        kind, name = asked.resource
        path = f"/v1/configs/{NAMES[kind]}/{name or 'default'}"
        change = {"name": asked.key, "operation": "set", "value": asked.value}
        if asked.value is None:
            change["operation"] = "delete"
        body = {"configs": [change]}
        take = lambda answer: self._answered(asked, answer)  # noqa: E731
        self._send("PATCH", path, body, asked.request_id, take)

    def _answered(self, asked: Asked, answer: Reply | Unreachable) -> None:
        if isinstance(answer, Reply) and answer.status == 200:
            reply = json.loads(answer.body)
            asked.back, asked.offset = self._next(), reply["offset"]
            asked.changed = reply["resources"][0]["changed"]
            self.facts["configs altered"] += 1
            return
        if isinstance(answer, Reply) and answer.status in (400, 404, 409):
            code = json.loads(answer.body)["code"]
            if code in ("REQUEST_EXPIRED", "REQUEST_FROM_FUTURE"):
                return  # A clock that leapt: what an earlier try came to isn't known.
            asked.code = code
            if code == "BROKER_ID_NOT_REGISTERED" and asked.resource[0] == BROKER:
                return  # A controller that has not registered yet.
            if code == "INVALID_CONFIG" and self._may_be_refused_by_elr(asked):
                return
            wanted = "INVALID_CONFIG" if asked.resource[0] == TOPIC else "INVALID_REQUEST"
            if asked.value != "bad" or code != wanted:
                self.cluster.world.fail(f"C1: {asked} was refused", None)
            self.facts["configs refused"] += 1
            return
        if isinstance(answer, Reply) and answer.status not in (421, 429, 503, 507):
            self.cluster.world.fail(f"configs: {answer.status}: {answer.body[:300]!r}", None)
        if asked.tries < TRIES:
            again = int(self.dice.uniform(0.05, 0.6) * US)
            self.process.schedule(again, lambda: self._try(asked), "retry")

    def _may_be_refused_by_elr(self, asked: Asked) -> bool:
        """ELR may be on: then there is one min ISR for all brokers, and it stays."""
        kind, name = asked.resource
        may = self.cluster.shape.replicated and kind == BROKER and asked.key == MIN_ISR
        return may and (name != "" or asked.value is None)

    def _read(self) -> None:
        name = self.dice.choice(TOPICS)
        if name not in self._there:
            return
        asked = Asked(self._id(), self._next(), (TOPIC, name))

        def answered(answer: Reply | Unreachable) -> None:
            if not isinstance(answer, Reply) or answer.status != 200:
                return
            reply = json.loads(answer.body)
            asked.back, asked.offset = self._next(), reply["offset"]
            found = {each["name"]: (each["value"], each["source"]) for each in reply["configs"]}
            asked.told = {key: found[key] for key in DEFAULTS}
            self.asked.append(asked)

        self._send("GET", f"/v1/configs/topic/{name}", None, asked.request_id, answered)

    # -- what must hold -----------------------------------------------------------------------

    def at_the_end(self) -> Counter[str]:
        """Hold every answer against the log of the leader, and what is at rest."""
        self._order()
        leader = self.cluster.leader()
        controller = self.cluster.running()[leader]
        if controller.ledger.log_start == 0:
            self._fold(controller.ledger)
        self._at_rest(controller.image, leader)
        return self.facts

    def _fail(self, why: str) -> None:
        self.cluster.world.fail(why, None)

    def _order(self) -> None:
        """C3."""
        events = [(each.call, each) for each in self.asked]
        events += [(each.back, each) for each in self.asked if each.back is not None]
        highest, seen = -1, {}
        for tick, asked in sorted(events, key=lambda event: event[0]):
            if tick == asked.call:
                seen[id(asked)] = highest
            elif asked.offset is not None:
                if asked.offset < seen[id(asked)]:
                    self._fail(f"C3: {asked} came after {seen[id(asked)]} was told")
                highest = max(highest, asked.offset)

    def _fold(self, ledger: LedgerReader) -> None:
        """C1, C2 and C4: go through the log once."""
        configs: Configs = defaultdict(dict)
        names: dict[bytes, str] = {}
        changes = {parse_uuid(each.request_id): each for each in self.asked if each.told is None}
        reads = sorted(
            (each for each in self.asked if each.told is not None), key=lambda each: each.offset
        )
        node, done = -1, set()
        for batch in ledger.batches(0):
            while reads and reads[0].offset < batch.header.end_offset:
                self._judge_read(reads.pop(0), configs, node)
            request_id = batch.header.provenance.request_id
            asked = changes.get(request_id) if request_id else None
            records = decode_records(batch.records)
            if asked is not None:
                mine = [r for r in records if isinstance(r, ConfigRecord)]
                if mine or asked.offset == batch.header.end_offset:
                    self._judge_change(asked, mine, batch.header.end_offset, configs)
                    if request_id in done:
                        self._fail(f"C1: {asked} is in the log twice")
                    done.add(request_id)
            for record in records:
                match record:
                    case BeginEpochRecord():
                        node = record.leader_id
                    case TopicRecord():
                        names[record.topic_id] = record.name
                    case RemoveTopicRecord():
                        configs.pop((TOPIC, names.pop(record.topic_id)), None)
                    case ConfigRecord():
                        _replay(configs, record)
                    case FeatureLevelRecord() if record.name == ELR_VERSION:
                        self._elr = record.feature_level > 0
                    case PartitionChangeRecord() if self._may_judge(record, batch):
                        name = names[record.topic_id]
                        if self._effective(configs, name, UNCLEAN, node)[0] != "true":
                            self._fail(f"C4: an unclean election of {name} at {record}")
                        self.facts["unclean elections"] += 1
        for asked in changes.values():
            wrote = asked.offset is not None and asked.changed
            if wrote and parse_uuid(asked.request_id) not in done:
                self._fail(f"C1: {asked} was acknowledged, and is not in the log")
        for read in reads:
            self._judge_read(read, configs, node)

    def _may_judge(self, record: PartitionChangeRecord, batch: Any) -> bool:
        """Tell whether an election was unclean by config: neither asked for nor from the ELR."""
        by_request = (
            batch.header.provenance.operation == "ElectLeaders"
            and not batch.header.provenance.principal.startswith("Controller:")
        )
        return record.leader_recovery_state == 1 and not self._elr and not by_request

    def _judge_change(
        self, asked: Asked, mine: list[ConfigRecord], end: int, configs: Configs
    ) -> None:
        """C1."""
        kind, name = asked.resource
        old = configs[kind, name].get(asked.key)
        again = kind == BROKER and asked.value is not None
        wanted = [ConfigRecord(kind, name, asked.key, asked.value)]
        if asked.code or asked.value == "bad" or (asked.value == old and not again):
            wanted = []
        if mine != wanted or (asked.offset is not None and asked.changed != [r.name for r in mine]):
            self._fail(f"C1: {asked} stands at {end} as {mine}, where the value was {old!r}")
        if mine and asked.offset is not None and asked.offset != end:
            self._fail(f"C1: {asked} stands at {end}")
        self.facts["config changes judged"] += 1

    def _judge_read(self, read: Asked, configs: Configs, node: int) -> None:
        """C2. A node answers with its own configs as a broker's, and only the leader answers."""
        name = read.resource[1]
        wanted = {key: self._effective(configs, name, key, node) for key in DEFAULTS}
        if read.told != wanted:
            self._fail(f"C2: {read}; the log says {wanted}")
        self.facts["config reads judged"] += 1

    def _at_rest(self, image: Any, node: int) -> None:
        """C5."""
        configs: Configs = defaultdict(dict)
        for resource, values in image.configs.resources.items():
            configs[resource].update(values)
        online = {b.broker_id for b in image.cluster.brokers.values() if b.active}
        for topic_id, number in image.topics.leaderless:
            name = image.topics.by_id[topic_id].name
            partition = image.topics.partitions[topic_id, number]
            unclean = self._effective(configs, name, UNCLEAN, node)[0] == "true"
            if online & set(partition.replicas if unclean else partition.isr):
                self._fail(f"C5: {name}-{number} has no leader: {partition}, unclean {unclean}")


def min_isr(image: Any, topic_id: bytes, own: dict[str, str]) -> int:
    """Return the min ISR that counts for a topic while ELR is on, whoever leads."""
    resources = image.configs.resources
    configs: Configs = defaultdict(dict)
    for resource in ((TOPIC, image.topics.by_id[topic_id].name), (BROKER, "")):
        configs[resource].update(resources.get(resource, ()))
    return int(effective(configs, image.topics.by_id[topic_id].name, MIN_ISR, -1, own, elr=True)[0])


def _replay(configs: Configs, record: ConfigRecord) -> None:
    mine = configs[record.resource_type, record.resource_name]
    if record.value is None:
        mine.pop(record.name, None)
    else:
        mine[record.name] = record.value


def effective(
    configs: Configs, topic: str, key: str, node: int, own: dict[str, str], *, elr: bool
) -> tuple[str, str]:
    """Return value and source, by the table in docs/how-to.md."""
    synonym = SYNONYMS[key]
    ignored = elr and key == MIN_ISR
    for found, source in (
        (configs[TOPIC, topic].get(key), "DYNAMIC_TOPIC_CONFIG"),
        (None if ignored else configs[BROKER, str(node)].get(synonym), "DYNAMIC_BROKER_CONFIG"),
        (configs[BROKER, ""].get(synonym), "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        (own.get(synonym), "STATIC_BROKER_CONFIG"),
    ):
        if found is not None:
            return found, source
    return DEFAULTS[key], "DEFAULT_CONFIG"
