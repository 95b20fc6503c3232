"""Leaders of partitions that change their ISRs, and administrators who hold elections.

Rule: a leader asks for what its own image shows, and sometimes for what can't be granted: members
that are fenced, or that have another epoch than it believes. It believes an answer and nothing
else. What it was granted must stand in the log (`judge`), and no image on the way may break the
rules of replication (`check`).

Once the faults have ended, every leader asks for full ISRs until it has them, and nobody shrinks
one. So in the end every ISR is full, and every partition has its preferred leader.
"""

import json
from collections import Counter
from random import Random
from typing import Any

import msgspec

from metadata.features import ELR_VERSION, METADATA_VERSION
from metadata.image import MetadataImage, Partition
from metadata.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    IsrMember,
    PartitionToAlter,
    TopicToAlter,
)
from metadata.messages.wire import MSGPACK
from metadata.records import PartitionChangeRecord, PartitionRecord, Record
from metadata.uuids import parse_uuid, uuid7, uuid_text
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.simulation.configurers import min_isr
from tests.simulation.movers import broken_rule

ELECTOR_HOST = 902
MIN_ISR = 2
_ASKS_PER_S = 3.0
_ELECTIONS_PER_S = 0.3
_TRY_S = 2.0
_ELR_FROM = 23
"""The metadata.version that ELR needs. The elector raises a lower one, at the latest once the
faults have ended."""
_EXPECTED = {
    "NOT_CONTROLLER",
    "FENCED_LEADER_EPOCH",
    "INVALID_UPDATE_VERSION",
    "INELIGIBLE_REPLICA",
    "UNKNOWN_TOPIC_ID",
    "UNKNOWN_TOPIC_OR_PARTITION",
}
"""What a leader may be told about a partition, however honest it is."""
Key = tuple[bytes, int]


class Replicas:
    """All leaders, and one elector."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        self._granted: list[tuple[Key, int, tuple[Any, ...]]] = []
        """Partition, partition epoch, and the state that was answered."""
        self._history: dict[tuple[Key, int], tuple[Any, ...]] = {}
        """By partition and partition epoch: what the log says."""

    # -- leaders ------------------------------------------------------------------------------

    def begin_leader(self, incarnation: Any, requester: Any) -> None:
        """Let a broker's process look after the partitions that it leads."""
        _Leader(self, self._cluster, incarnation, requester).go_on()

    def granted(self, key: Key, partition_epoch: int, state: tuple[Any, ...]) -> None:
        """A leader was told that its change is made."""
        self.counts["ISRs granted"] += 1
        self._granted.append((key, partition_epoch, state))

    # -- elections ----------------------------------------------------------------------------

    def start(self) -> None:
        """Let the elector begin."""
        cluster = self._cluster
        self._dice: Random = cluster.world.random("elector")
        host = SimulatedHost(cluster.world, cluster.network, ELECTOR_HOST)
        self._process = host.boot()
        self._requests = host.requests(Caller("User:elector", "token", "10.0.0.7"))
        self._plan()

    def _plan(self) -> None:
        delay = int(self._dice.expovariate(_ELECTIONS_PER_S) * US)
        self._process.schedule(delay, self._act, "elector")

    def _act(self) -> None:
        self._plan()
        leader = self._cluster.leader()
        if leader is None or (self._cluster.healed and self.settled()):
            return
        levels = self._cluster.controllers[leader].image.features.levels
        turn = self._dice.random()
        elr = levels.get(ELR_VERSION, 0)
        low = levels.get(METADATA_VERSION, 0) < _ELR_FROM
        if low and (turn < 0.3 or self._cluster.healed):
            self._send("/v1/features", {"updates": [_level(METADATA_VERSION, _ELR_FROM)]})
        elif turn < 0.3 and self._cluster.seed % 2 and not elr:
            self._send("/v1/features", {"updates": [_level(ELR_VERSION, 1)]})
        elif turn < 0.1 and elr:
            off = {"feature": ELR_VERSION, "maxVersionLevel": 0, "upgradeType": "safe_downgrade"}
            self._send("/v1/features", {"updates": [off]})
        else:
            kind = "UNCLEAN" if self._dice.random() < 0.3 else "PREFERRED"
            self._send("/v1/partitions/elect", {"electionType": kind, "topicPartitions": None})

    def _send(self, path: str, message: dict[str, Any]) -> None:
        wall = self._process.clock.wall_ms()
        headers = {
            "content-type": "application/json",
            "x-logberg-request-id": uuid_text(uuid7(wall, self._dice.getrandbits(74))),
        }
        request = Request("POST", path, json.dumps(message).encode(), headers=headers)

        def answered(answer: Reply | Unreachable) -> None:
            if isinstance(answer, Reply) and answer.status == 200:
                reply = json.loads(answer.body)
                self.counts[f"done: {path}"] += 1
                self.counts["elected by request"] += reply.get("elected", 0)

        self._requests.request(
            f"http://controller-{self._cluster.leader()}", request, answered, _TRY_S
        )

    # -- what must hold -------------------------------------------------------------------------

    def settled(self) -> bool:
        """Every partition has a full ISR and its preferred leader, and the level is raised."""
        leader = self._cluster.leader()
        if leader is None:
            return False
        image = self._cluster.controllers[leader].image
        if image.features.levels.get(METADATA_VERSION, 0) < _ELR_FROM:
            return False
        topics = image.topics
        short = sum(lacks.in_sync for lacks in topics.lacks.values())
        return not short and not len(topics.unpreferred)

    def check(self, image: MetadataImage, node_id: int | None) -> None:
        """Check the rules of replication in an image."""
        if not self._cluster.shape.replicated:
            return
        elr = image.features.levels.get(ELR_VERSION, 0) > 0
        for key, partition in image.topics.partitions.items():
            moved = broken_rule(image, partition) if self._cluster.shape.moved else ""
            if moved:
                self._cluster.world.fail(
                    f"I17: {moved}: partition {key[1]} at offset {image.offset}: {partition}",
                    node_id,
                )
            least = MIN_ISR
            if self._cluster.shape.configurers and partition.elr:
                least = min_isr(image, key[0], self._cluster.configurers.own)
            wrong = _broken_rule(image, partition, least, elr=elr)
            if wrong:
                self._cluster.world.fail(
                    f"I16: {wrong}: partition {key[1]} at offset {image.offset}: {partition}",
                    node_id,
                )

    def note(self, image: MetadataImage, records: list[Record]) -> None:
        """Note what a batch of the log made of partitions."""
        for record in records:
            if isinstance(record, (PartitionRecord, PartitionChangeRecord)):
                key = (record.topic_id, record.partition_id)
                partition = image.topics.partitions.get(key)
                if partition is not None:
                    self._history[key, partition.partition_epoch] = _state(partition)

    def judge(self) -> Counter[str]:
        """Every change that a leader was granted stands in the log, as it was told."""
        for key, partition_epoch, state in self._granted:
            # A topic that the same transaction removed, and history before a snapshot, are unknown.
            logged = self._history.get((key, partition_epoch), state)
            if logged != state:
                self._cluster.world.fail(
                    f"I16: a leader was granted {state} as epoch {partition_epoch} of partition "
                    f"{key[1]}, and the log says {logged}",
                    None,
                )
        return self.counts


class _Leader:
    """One process of a broker: it asks for one change after another."""

    def __init__(self, replicas: Replicas, cluster: Any, incarnation: Any, requester: Any) -> None:
        self._replicas = replicas
        self._cluster = cluster
        self._incarnation = incarnation
        self._requests = requester
        self._dice: Random = cluster.world.random(f"leader/{incarnation.broker_id}")

    def go_on(self) -> None:
        """Ask for something, in a while."""
        delay = int(self._dice.expovariate(_ASKS_PER_S) * US)
        self._incarnation.process.schedule(delay, self._act, "leader")

    def _act(self) -> None:
        agent = self._incarnation.agent
        if agent is None or not agent.may_serve():
            self.go_on()
            return
        image = agent.image
        topics = [
            wanted
            for topic_id in image.topics.by_id
            if (wanted := self._wanted(image, topic_id)) is not None
        ]
        leader = self._cluster.leader()
        if not topics or leader is None:
            self.go_on()
            return
        request = AlterPartitionRequest(
            cluster_id=agent._config.cluster_id,
            broker_id=self._incarnation.broker_id,
            broker_epoch=agent.broker_epoch,
            topics=tuple(topics),
        )
        if not self._cluster.healed and self._dice.random() < 0.1:
            leader = self._dice.choice(list(self._cluster.hosts))
        self._requests.request(
            f"http://controller-{leader}",
            Request(
                "POST",
                "/v1/partitions/alter",
                msgspec.msgpack.encode(request),
                headers={"content-type": MSGPACK},
            ),
            self._answered,
            _TRY_S,
        )

    def _wanted(self, image: MetadataImage, topic_id: bytes) -> TopicToAlter | None:
        """Return the ISRs to ask for in one topic; None: they are as they should be."""
        found = []
        for number, partition in image.topics.partitions_of(topic_id):
            if partition.leader != self._incarnation.broker_id:
                continue
            isr = self._members(image, partition)
            if {member.broker_id for member in isr} == {*partition.isr}:
                continue
            found.append(
                PartitionToAlter(number, partition.leader_epoch, partition.partition_epoch, isr)
            )
        return TopicToAlter(tuple(found), topic_id=uuid_text(topic_id)) if found else None

    def _members(self, image: MetadataImage, partition: Partition) -> tuple[IsrMember, ...]:
        dice, faults = self._dice, not self._cluster.healed
        act = dice.random() if faults else 0.0
        members = []
        for replica in partition.replicas:
            broker = image.cluster.brokers.get(replica)
            good = broker is not None and broker.active
            shrinks = act > 0.8 and replica != partition.leader and dice.random() < 0.5
            lies = 0.7 < act <= 0.8
            if (good and not shrinks) or lies or replica == partition.leader:
                epoch = -1 if broker is None or dice.random() < 0.5 else broker.broker_epoch
                members.append(IsrMember(replica, epoch))
        return tuple(members)

    def _answered(self, answer: Reply | Unreachable) -> None:
        if isinstance(answer, Reply) and answer.status == 200:
            reply = msgspec.msgpack.decode(answer.body, type=AlterPartitionReply)
            for topic in reply.topics:
                for found in topic.partitions:
                    code = None if found.error is None else found.error.code
                    self._replicas.counts[f"ISR: {code or 'granted'}"] += 1
                    # The change of an ISR may complete a reassignment, and move the leader.
                    if code in (None, "NEW_LEADER_ELECTED"):
                        assert topic.topic_id is not None
                        self._replicas.granted(
                            (parse_uuid(topic.topic_id), found.partition_index),
                            found.partition_epoch,
                            (
                                found.leader_id,
                                found.leader_epoch,
                                found.isr,
                                found.leader_recovery_state,
                            ),
                        )
                    elif code not in _EXPECTED:
                        self._cluster.world.fail(f"I16: a leader was told {found.error}", None)
        elif isinstance(answer, Reply) and answer.status not in (409, 421, 429, 503, 507):
            self._cluster.world.fail(f"I16: a leader was answered {answer.body[:300]!r}", None)
        self.go_on()


def _state(partition: Partition) -> tuple[Any, ...]:
    return (
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.leader_recovery_state,
    )


def _broken_rule(image: MetadataImage, partition: Partition, least: int, *, elr: bool) -> str:
    """Return which rule a partition breaks; empty: none. `least`: the configured min ISR."""
    isr, eligible, replicas = {*partition.isr}, {*partition.elr}, {*partition.replicas}
    if len(isr) < len(partition.isr) or not isr <= replicas:
        return "the ISR has strangers or duplicates"
    if not eligible <= replicas or eligible & isr:
        return "the ELR has strangers or members of the ISR"
    if not isr and not elr:
        return "the ISR is empty without ELR"
    if partition.leader != -1 and partition.leader not in isr:
        return "the leader is not in the ISR"
    if eligible and (not elr or len(isr) >= min(least, len(replicas))):
        return "there is an ELR beside an ISR that is large enough"
    if partition.leader_recovery_state and len(isr) > 1:
        return "the ISR grew while the leader recovers"
    for replica in isr:
        broker = image.cluster.brokers.get(replica)
        if broker is not None and broker.active:
            continue
        # Without ELR the last member stays, so that it can come back cleanly.
        if len(isr) > 1 or partition.leader != -1:
            return f"broker {replica} is fenced or stopping, and in the ISR"
    return ""


def _level(feature: str, level: int) -> dict[str, Any]:
    return {"feature": feature, "maxVersionLevel": level, "upgradeType": "upgrade"}
