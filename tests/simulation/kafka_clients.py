"""Kafka clients of simulated agents: they ask for Metadata by bytes, and compare it with the image.

Rule: the expected answer is worked out here from the agent's image, by other code than the
product's. An agent that may not serve must name no broker and no partition.
"""

from collections import Counter
from typing import Any

from broker_agent.people import AgentPeople
from controller.access.guard import AccessGuard
from kafka_listener.agent_listener import AgentImage
from kafka_listener.asking.request import Fields, KafkaRequest, Response
from kafka_listener.clients.agent_handlers import agent_handlers
from kafka_listener.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from metadata.image import MetadataImage
from runtime.sockets.refusals import Refusals
from tests.simulation.quorum_cluster import quiet_log

METADATA = 3
LISTENER = "PLAINTEXT"
_US = 1_000_000
_EVERY_US = 100_000
_NO_LEADER, _NOT_FOUND = 5, 72


class KafkaClients:
    """Asks every running agent, ten times a second."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._handlers: dict[int, Any] = {}
        self._random = cluster.world.random("kafka-clients")
        self._next_us = 0
        self.counts: Counter[str] = Counter()

    def look(self) -> None:
        """Ask if it is time: a hook of the world, which runs after every event."""
        now = self._cluster.world.now_us
        if now < self._next_us:
            return
        self._next_us = now + _EVERY_US
        for incarnation in self._cluster.brokers.values():
            if incarnation.process.alive:
                self._ask(incarnation)

    def _ask(self, incarnation: Any) -> None:
        version = self._random.randrange(14)
        wanted = {"Topics": [] if version == 0 else None}
        sent = decode_request(METADATA, version, encode_request(METADATA, version, wanted))
        request = KafkaRequest(METADATA, version, "a-client", sent, listener=LISTENER)
        bodies: list[Response] = []
        agent = incarnation.agent
        key = id(incarnation)
        if key not in self._handlers:
            clock = incarnation.process.clock
            guard = AccessGuard(agent.config, Refusals(quiet_log(), clock.call_later))
            people = AgentPeople(
                None, agent.config.super_users, clock, lambda agent=agent: agent.image
            )
            source = AgentImage(agent, {}, guard, people)
            self._handlers[key] = agent_handlers(source, clock)[METADATA]
        incarnation.process.run(lambda: self._handlers[key](request, bodies.append))
        (body,) = bodies
        said = decode_response(METADATA, version, _encoded(version, body))
        if agent.may_serve():
            self.counts["served"] += 1
            self._compare(said, agent.image, version)
        else:
            self.counts["refused"] += 1
            assert (said["Brokers"], said["Topics"]) == ([], []), said

    def _compare(self, said: Fields, image: MetadataImage, version: int) -> None:
        live = {
            number: point
            for number, broker in image.cluster.brokers.items()
            for point in broker.end_points
            if not broker.fenced and point.name == LISTENER
        }
        brokers = [(b["NodeId"], b["Host"], b["Port"]) for b in said["Brokers"]]
        assert brokers == [(n, live[n].host, live[n].port) for n in sorted(live)], brokers
        found = {
            (topic["Name"], part["PartitionIndex"]): part
            for topic in said["Topics"]
            for part in topic["Partitions"]
        }
        expected = {
            (image.topics.by_id[topic_id].name, number): partition
            for (topic_id, number), partition in image.topics.partitions.items()
        }
        assert found.keys() == expected.keys()
        for key, partition in expected.items():
            part = found[key]
            self.counts["partitions"] += 1
            if partition.leader in live:
                assert part["LeaderId"] == partition.leader, (key, part)
            else:
                self.counts["without a leader"] += 1
                assert part["LeaderId"] == -1
                assert part["ErrorCode"] in {_NO_LEADER, _NOT_FOUND}
            if version >= 7:
                assert part["LeaderEpoch"] == partition.leader_epoch
            if version >= 1:
                assert part["ReplicaNodes"] == list(partition.replicas)
                assert part["IsrNodes"] == list(partition.isr)


def _encoded(version: int, body: Response) -> bytes:
    if isinstance(body, dict):
        return encode_response(METADATA, version, body)
    return body if isinstance(body, bytes) else b"".join(body)
