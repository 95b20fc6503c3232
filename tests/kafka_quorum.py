"""Controllers in one process that Kafka's raft client may ask, for tests of the quorum's
requests."""

from typing import Any

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.refused_brokers import RefusedBrokers
from kafka_listener.asking.request import KafkaFailure, KafkaRequest, Response
from kafka_listener.quorum_requests.handlers import (
    DESCRIBE_QUORUM,
    FETCH,
    FETCH_SNAPSHOT,
    QuorumRequests,
)
from kafka_listener.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kafka_listener.wire.record_batches import RecordBatch, decode_batches
from runtime.http.requests import ANONYMOUS, Caller
from tests.unit.controller.cluster import CLUSTER_ID, Cluster

TOPIC_ID = bytes(15) + b"\x01"
DIRECTORY = b"broker directory"
Fields = dict[str, Any]


class KafkaCluster(Cluster):
    """Controllers with the handlers of Kafka's raft client. Requests and answers go as bytes."""

    def __init__(self, **config: Any) -> None:
        self.quorum_requests: dict[int, QuorumRequests] = {}
        super().__init__(
            on_made=self._made,
            **{
                "initial_features": {"metadata.version": 30, "logberg.version": 4},
                "kafka_address": lambda n: ("CONTROLLER", f"controller-{n}", 9090 + n),
                **config,
            },
        )
        # The leader writes the voters' addresses.
        self.run(1.0)

    def _made(self, controller: Any, config: Any, clock: Any, disk: Any, log: Any) -> None:
        self.quorum_requests[config.node_id] = QuorumRequests(
            controller, config, clock, disk, log, RefusedBrokers(log)
        )

    @property
    def epoch(self) -> int:
        return int(self.shared.epoch)

    def end(self, node_id: int = 1) -> int:
        """Return the projected high watermark of a controller."""
        return self.quorum_requests[node_id].log.end

    def ask_kafka(
        self, node_id: int, key: int, version: int, fields: Fields, caller: Caller = ANONYMOUS
    ) -> list[Fields]:
        """Send a request; return the list that will hold the answer."""
        data = encode_request(key, version, fields)
        request = KafkaRequest(
            key, version, "test", decode_request(key, version, data), caller, listener="CONTROLLER"
        )
        answers: list[Fields] = []

        def answer(said: Response) -> None:
            assert isinstance(said, dict)
            assert not answers, "a second answer"
            answers.append(decode_response(key, version, encode_response(key, version, said)))

        handler = self.quorum_requests[node_id].handlers()[key]

        def handle() -> None:
            try:
                handler(request, answer)
            except KafkaFailure as failure:
                answers.append({"refused": failure.code})

        self.processes[node_id].run(handle)
        return answers

    def refusal(
        self, node_id: int, key: int, version: int, fields: Fields, caller: Caller = ANONYMOUS
    ) -> KafkaCode:
        """Return the code with which a request is refused as a whole."""
        [answer] = self.ask_kafka(node_id, key, version, fields, caller)
        code: KafkaCode = answer["refused"]
        return code

    def fetch(self, node_id: int = 1, *, caller: Caller = ANONYMOUS, **said: Any) -> list[Fields]:
        """Send a Fetch; return the list that will hold the answer."""
        version = said.pop("version", 18)
        return self.ask_kafka(
            node_id, FETCH, version, fetch_fields(self.epoch, version, **said), caller
        )

    def fetched(self, node_id: int = 1, **said: Any) -> Fields:
        """Send a Fetch, wait for the answer, and return its partition with its NodeEndpoints."""
        answers = self.fetch(node_id, **said)
        self.run_until(lambda: bool(answers))
        return {**partition_of(answers[0]), "NodeEndpoints": answers[0]["NodeEndpoints"]}

    def fetch_snapshot(self, node_id: int = 1, **said: Any) -> Fields:
        """Send a FetchSnapshot and return the answer's partition."""
        partition = {
            "Partition": 0,
            "CurrentLeaderEpoch": said.get("epoch", self.epoch),
            "SnapshotId": {"EndOffset": said["offset"], "Epoch": said["of_epoch"]},
            "Position": said.get("position", 0),
        }
        fields = {
            "ClusterId": CLUSTER_ID,
            "MaxBytes": said.get("max_bytes", 1 << 20),
            "Topics": [{"Name": "__cluster_metadata", "Partitions": [partition]}],
        }
        [answer] = self.ask_kafka(node_id, FETCH_SNAPSHOT, 1, fields)
        found: Fields = answer["Topics"][0]["Partitions"][0]
        return found

    def describe_quorum(self, node_id: int = 1, version: int = 2) -> Fields:
        """Ask for the quorum, and return the answer."""
        topic = {"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}
        [answer] = self.ask_kafka(node_id, DESCRIBE_QUORUM, version, {"Topics": [topic]})
        return answer


def fetch_fields(leader_epoch: int, version: int = 18, **said: Any) -> Fields:
    """Return a Fetch as Kafka's raft client sends it."""
    partition = {
        "Partition": 0,
        "CurrentLeaderEpoch": said.get("epoch", leader_epoch),
        "FetchOffset": said.get("offset", 0),
        "LastFetchedEpoch": said.get("last_epoch", 0),
        "PartitionMaxBytes": said.get("partition_max_bytes", said.get("max_bytes", 1 << 20)),
        "ReplicaDirectoryId": said.get("directory", DIRECTORY),
    }
    if version >= 18:
        partition["HighWatermark"] = said.get("watermark", -1)
    return {
        "ClusterId": said.get("cluster", CLUSTER_ID),
        "ReplicaState": {"ReplicaId": said.get("replica", 11), "ReplicaEpoch": -1},
        "MaxWaitMs": said.get("wait_ms", 500),
        "MinBytes": 0,
        "MaxBytes": 1 << 20,
        "Topics": [{"TopicId": said.get("topic", TOPIC_ID), "Partitions": [partition]}],
    }


def partition_of(answer: Fields) -> Fields:
    """Return the partition of a Fetch answer."""
    found: Fields = answer["Responses"][0]["Partitions"][0]
    return found


def batches_of(partition: Fields) -> list[RecordBatch]:
    """Return the batches in a partition."""
    return list(decode_batches(partition["Records"]))
