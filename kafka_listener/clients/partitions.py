"""What clients learn about one partition, with Kafka's error codes.

Rule, as in Kafka's KRaftMetadataCache: a partition whose leader isn't alive is answered with
LEADER_NOT_AVAILABLE and no leader. If the leader is registered but has no endpoint on the client's
listener, clients from version 6 of Metadata on learn LISTENER_NOT_FOUND. Version 0 of Metadata
leaves out replicas that aren't alive and says REPLICA_NOT_AVAILABLE.
"""

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.clients.alive_brokers import NOBODY, AliveBrokers
from kafka_listener.wire.schema import Fields
from metadata.image.partition import Partition
from metadata.records import DIRECTORY_LOST


class PartitionFields:
    """Describes partitions of one image for the clients of one listener."""

    def __init__(
        self, alive: AliveBrokers, *, names_listener: bool = True, only_alive: bool = False
    ) -> None:
        """`names_listener`: say LISTENER_NOT_FOUND. `only_alive`: leave out other replicas."""
        self._alive = alive
        self._names_listener = names_listener
        self._only_alive = only_alive

    def of(self, number: int, partition: Partition) -> Fields:
        """Return one partition in the fields that Metadata and DescribeTopicPartitions share."""
        replicas = self._shown(partition.replicas)
        isr = self._shown(partition.isr)
        offline = [
            broker
            for place, broker in enumerate(partition.replicas)
            if self._alive.endpoint(broker) is None or _lost(partition, place)
        ]
        leader, code = partition.leader, KafkaCode.NONE
        if self._alive.endpoint(leader) is None:
            leader, code = NOBODY, self._without_leader(leader)
        elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
            code = KafkaCode.REPLICA_NOT_AVAILABLE
        return {
            "ErrorCode": int(code),
            "PartitionIndex": number,
            "LeaderId": leader,
            "LeaderEpoch": partition.leader_epoch,
            "ReplicaNodes": replicas,
            "IsrNodes": isr,
            "OfflineReplicas": offline,
        }

    def _without_leader(self, leader: int) -> KafkaCode:
        if self._names_listener and self._alive.registered(leader):
            return KafkaCode.LISTENER_NOT_FOUND
        return KafkaCode.LEADER_NOT_AVAILABLE

    def _shown(self, brokers: tuple[int, ...]) -> list[int]:
        if not self._only_alive:
            return list(brokers)
        return [broker for broker in brokers if self._alive.endpoint(broker) is not None]


def _lost(partition: Partition, place: int) -> bool:
    return bool(partition.directories) and partition.directories[place] == DIRECTORY_LOST
