"""Administrators who add partitions, reassign them and cancel reassignments.

Rule: a mover believes an answer and nothing else. What it was told is done must stand in the log
(`judge`), however often the request was sent, and no image on the way may hold a reassignment that
breaks the rules (`broken_rule`). The leaders of `replicas` bring the new replicas into the ISRs.

Brokers have two log directories each. They say in which of them their replicas lie. Now and then
some of them fail until the broker's next process.

Once the faults have ended, nobody moves any more. So in the end no reassignment is running.
"""

import json
from collections import Counter, defaultdict
from random import Random
from typing import Any

from metadata.image import MetadataImage, Partition
from metadata.records import PartitionChangeRecord, PartitionRecord, Record
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import JSON, Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.simulation.carriers import credential_of

MOVER_HOST = 903
_ACTS_PER_S = 1.5
_TRY_S = 2.0
_TRIES = 8
_PARTITIONS_MAX = 6
_EXPECTED = {
    "UNKNOWN_TOPIC_OR_PARTITION",
    "NO_REASSIGNMENT_IN_PROGRESS",
    "INVALID_REPLICA_ASSIGNMENT",
    "INVALID_REPLICATION_FACTOR",
    "INVALID_PARTITIONS",
    "UNKNOWN_TOPIC_ID",
    "NOT_LEADER_OR_FOLLOWER",
    "STALE_BROKER_EPOCH",
}
"""What a mover may be told: topics go, and brokers are unknown or fenced."""
Key = tuple[bytes, int]
DECLARED = "declared-"
"""How the names of topics begin whose number of partitions a declaration says (`declarers`)."""


def directories_of(broker_id: int) -> tuple[bytes, ...]:
    """Return the ids of a broker's log directories."""
    return (bytes((broker_id,)) * 16, bytes((100 + broker_id,)) * 16)


class Movers:
    """One client; its requests are under way side by side."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        self._told: list[tuple[Key, tuple[int, ...]]] = []
        """Partitions that were told to be on their way, and the wanted replicas."""
        self._grown: dict[bytes, int] = {}
        """By topic: the most partitions that were told to be there."""
        self._seen: defaultdict[Key, set[tuple[int, ...]]] = defaultdict(set)
        """By partition: every list of replicas in the log."""
        self._failed: set[int] = set()
        """Brokers with a failed directory."""
        self._speakers: dict[int, Any] = {}
        self.whole_log = False
        """`_seen` is from a log that begins at offset 0."""

    def start(self) -> None:
        """Let it begin."""
        cluster = self._cluster
        self._dice: Random = cluster.world.random("mover")
        self._host = SimulatedHost(cluster.world, cluster.network, MOVER_HOST)
        self._process = self._host.boot()
        caller = Caller("User:mover", "token", "10.0.0.6")
        self._requests = cluster.requests_of(self._host, caller)
        self._plan()

    def _plan(self) -> None:
        delay = int(self._dice.expovariate(_ACTS_PER_S) * US)
        self._process.schedule(delay, self._act, "mover")

    def _act(self) -> None:
        self._plan()
        leader = self._cluster.leader()
        if leader is None or not self._cluster.busy:
            return
        topics = self._cluster.controllers[leader].image.topics
        names = list(topics.names)
        if not names:
            return
        topic = topics.named(self._dice.choice(names))
        numbers = topics.ids_of(topic.topic_id)
        if self._dice.random() < 0.3:
            self._use_directories(topics)
        elif (
            self._dice.random() < 0.2
            and len(numbers) < _PARTITIONS_MAX
            and not topic.name.startswith(DECLARED)
        ):
            self._grow(topic, len(numbers) + self._dice.randint(1, 2))
        elif numbers:
            some = self._dice.sample(list(numbers), self._dice.randint(1, len(numbers)))
            self._move(topic, some)

    def _use_directories(self, topics: Any) -> None:
        """Let a broker say where its replicas lie, or let one of its directories fail."""
        broker_id = self._dice.choice(list(self._cluster.broker_hosts))
        incarnation = self._cluster.brokers.get(broker_id)
        if incarnation is None or not incarnation.process.alive or incarnation.process.paused:
            return
        agent, mine = incarnation.agent, directories_of(broker_id)
        if agent is None or not agent.may_serve():
            return
        if self._dice.random() < 0.3 and not self._cluster.healed:
            self.counts["directories failed"] += 1
            self._failed.add(broker_id)
            failed = self._dice.sample(mine, self._dice.choice((1, 1, 2)))
            incarnation.process.run(lambda: agent.set_directories(failed=failed), "disk")
            return
        replicas = [
            {
                "topicId": uuid_text(topic_id),
                "partition": number,
                "directory": uuid_text(self._dice.choice(mine)),
            }
            for topic_id, number in sorted(topics.held_by(broker_id))[:8]
        ]
        if replicas:
            body = {
                "clusterId": agent.config.cluster_id,
                "brokerEpoch": agent.broker_epoch,
                "replicas": replicas,
            }
            path = f"/v1/brokers/{broker_id}/directories"
            request = Request(
                "POST", path, json.dumps(body).encode(), headers={"content-type": JSON}
            )
            self._try(request, self._assigned, _TRIES, self._speaking_for(broker_id))

    def _assigned(self, reply: dict[str, Any]) -> None:
        for replica in reply["replicas"]:
            error = replica.get("error")
            self.counts["directories: " + ("noted" if error is None else error["code"])] += 1
            if error is not None and error["code"] not in _EXPECTED:
                self._cluster.world.fail(f"I17: a broker was told {error}", None)

    def _speaking_for(self, broker_id: int) -> Any:
        if broker_id not in self._speakers:
            self._speakers[broker_id] = self._host.requests(credential_of(broker_id))
        return self._speakers[broker_id]

    def replace_disks(self) -> None:
        """The faults have ended: brokers whose directories failed begin anew with all of them."""
        for broker_id in sorted(self._failed):
            incarnation = self._cluster.brokers.get(broker_id)
            if incarnation is not None and incarnation.process.alive:
                incarnation.process.kill()
        self._failed.clear()

    def _grow(self, topic: Any, count: int) -> None:
        def done(reply: dict[str, Any]) -> None:
            error = reply["topics"][0]["error"]
            if error is None:
                self.counts["partitions added"] += reply["topics"][0]["added"]
                self._grown[topic.topic_id] = max(count, self._grown.get(topic.topic_id, 0))

        self._send("/v1/partitions", {"topics": [{"name": topic.name, "count": count}]}, done)

    def _move(self, topic: Any, numbers: list[int]) -> None:
        brokers = list(self._cluster.broker_hosts)
        wanted = [
            {
                "topic": topic.name,
                "partition": number,
                "replicas": None
                if self._dice.random() < 0.3
                else self._dice.sample(brokers, self._dice.randint(1, 3)),
            }
            for number in sorted(numbers)
        ]

        def done(reply: dict[str, Any]) -> None:
            for asked, result in zip(wanted, reply["partitions"], strict=True):
                error = result.get("error")
                self.counts["moves: " + ("done" if error is None else error["code"])] += 1
                if error is not None and error["code"] not in _EXPECTED:
                    self._cluster.world.fail(f"I17: a mover was told {error}", None)
                if error is None and asked["replicas"] is not None:
                    key = (topic.topic_id, asked["partition"])
                    self._told.append((key, tuple(asked["replicas"])))

        self._send("/v1/reassignments", {"partitions": wanted}, done)

    def _send(self, path: str, message: dict[str, Any], done: Any) -> None:
        wall = self._process.clock.wall_ms()
        headers = {
            "content-type": "application/json",
            "x-logberg-request-id": uuid_text(uuid7(wall, self._dice.getrandbits(74))),
        }
        self._try(Request("POST", path, json.dumps(message).encode(), headers=headers), done, 1)

    def _try(self, request: Request, done: Any, tries: int, speaker: Any = None) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            status = answer.status if isinstance(answer, Reply) else 503
            if isinstance(answer, Reply) and status == 200:
                done(json.loads(answer.body))
            elif status in (421, 429, 503, 507) and tries < _TRIES:
                again = int(self._dice.uniform(0.05, 0.5) * US)
                self._process.schedule(
                    again, lambda: self._try(request, done, tries + 1, speaker), "mover"
                )
            elif isinstance(answer, Reply) and status in (400, 404, 409):
                code = json.loads(answer.body)["code"]
                self.counts[f"refused: {code}"] += 1
                if code not in _EXPECTED and not code.startswith("REQUEST_"):
                    self._cluster.world.fail(f"I17: a mover was told {answer.body!r}", None)

        leader = self._cluster.leader() or self._dice.choice(list(self._cluster.hosts))
        requests = speaker or self._requests
        requests.request(f"http://controller-{leader}", request, answered, _TRY_S)

    # -- what must hold -------------------------------------------------------------------------

    def settled(self) -> bool:
        """No reassignment is running, as far as a leader knows."""
        return self._cluster.leader() is not None and not self.moving()

    def moving(self) -> int:
        """Return how many partitions the leader's image shows on their way; no leader: 0."""
        leader = self._cluster.leader()
        if leader is None:
            return 0
        topics = self._cluster.controllers[leader].image.topics
        moving: int = sum(lacks.moving for lacks in topics.lacks.values())
        return moving

    def note(self, records: list[Record]) -> None:
        """Note what a batch of the log made of replicas."""
        for record in records:
            if isinstance(record, (PartitionRecord, PartitionChangeRecord)) and record.replicas:
                self._seen[record.topic_id, record.partition_id].add(record.replicas)

    def judge(self) -> Counter[str]:
        """What a mover was told is done was done."""
        if self.whole_log:
            for key, wanted in self._told:
                if not any(seen[: len(wanted)] == wanted for seen in self._seen[key]):
                    self._cluster.world.fail(
                        f"I17: partition {key[1]} was told to move to {wanted}, and the log has "
                        f"only {sorted(self._seen[key])}",
                        None,
                    )
        leader = self._cluster.leader()
        if leader is not None:
            topics = self._cluster.controllers[leader].image.topics
            for topic_id, count in self._grown.items():
                there = len(topics.ids_of(topic_id))
                if topics.by_id.get(topic_id) is not None and there < count:
                    self._cluster.world.fail(
                        f"I17: a topic was told to have {count} partitions, and has {there}", None
                    )
        return self.counts


def _has_failed(image: MetadataImage, partition: Partition, broker_id: int) -> bool:
    """Return whether the log directory of a replica is one that its registration has lost."""
    broker = image.cluster.brokers.get(broker_id)
    if broker is None or not partition.directories or broker_id not in partition.replicas:
        return False
    directory = partition.directories[partition.replicas.index(broker_id)]
    return directory in directories_of(broker_id) and directory not in broker.log_dirs


def broken_rule(image: MetadataImage, partition: Partition) -> str:
    """Return which rule of reassignments and directories a partition breaks; empty: none."""
    replicas, adding, removing = partition.replicas, set(partition.adding), set(partition.removing)
    if len(set(replicas)) < len(replicas) or not replicas:
        return "the replicas are empty, or one is there twice"
    if not removing <= set(replicas):
        return "a replica that leaves is none"
    if adding & removing:
        return "a replica comes and goes"
    if partition.directories and len(partition.directories) != len(replicas):
        return "there is not one directory for each replica"
    if partition.leader >= 0 and partition.leader in replicas:
        directory = partition.directories[replicas.index(partition.leader)]
        broker = image.cluster.brokers.get(partition.leader)
        known = directory in directories_of(partition.leader)
        if broker is not None and known and directory not in broker.log_dirs:
            return "the leader's log directory has failed"
    if len(partition.isr) > 1 and any(_has_failed(image, partition, b) for b in partition.isr):
        return "a replica is in sync whose log directory has failed"
    if not partition.moving or len(partition.isr) == 1:
        # An unclean election, or one from the ELR, makes an ISR of one; as in Kafka, the next
        # change completes the reassignment.
        return ""
    stay = set(replicas) - removing
    if stay and stay <= set(partition.isr):
        return "a reassignment whose replicas are all in sync is not complete"
    return ""
