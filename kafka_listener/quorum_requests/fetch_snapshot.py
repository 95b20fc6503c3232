"""Answers FetchSnapshot: a piece of a projected snapshot, cut anywhere (KIP-630).

Only the leader answers with bytes. A snapshot that is not here any more is told as such: the broker
then fetches, and learns which one to load now.
"""

from typing import Final

from structlog.typing import FilteringBoundLogger

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, KafkaFailure, KafkaRequest
from kafka_listener.projection.projected_snapshots import ProjectedSnapshots
from kafka_listener.quorum_requests.leader_view import TOPIC, LeaderView
from kafka_listener.wire.schema import Fields

_BYTES_MAX: Final = 1024 * 1024


class FetchSnapshotRequests:
    """Answers FetchSnapshot, on one controller."""

    def __init__(
        self, view: LeaderView, snapshots: ProjectedSnapshots, log: FilteringBoundLogger
    ) -> None:
        self._view = view
        self._snapshots = snapshots
        self._log = log

    def handle(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer one request, at once."""
        fields = request.fields
        if self._view.wrong_cluster(fields["ClusterId"]):
            answer({"ErrorCode": KafkaCode.INCONSISTENT_CLUSTER_ID, "Topics": []})
            return
        if not self._view.may_read_log(request.caller):
            raise KafkaFailure(
                KafkaCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{request.caller.principal} may not read the metadata log",
            )
        partition = _partition_of(fields)
        said = self._said(partition, min(fields["MaxBytes"], _BYTES_MAX))
        of_partition = {
            "Index": 0,
            "SnapshotId": partition["SnapshotId"],
            "CurrentLeader": self._view.current_leader(),
            "Size": 0,
            "Position": partition["Position"],
            "UnalignedRecords": b"",
            **said,
        }
        response: Fields = {"Topics": [{"Name": TOPIC, "Partitions": [of_partition]}]}
        if request.version >= 1:
            response["NodeEndpoints"] = self._view.node_endpoints(request.listener)
        answer(response)

    def _said(self, partition: Fields, max_bytes: int) -> Fields:
        objection = self._view.objection(partition["CurrentLeaderEpoch"])
        if objection is not KafkaCode.NONE:
            return {"ErrorCode": objection}
        asked, position = partition["SnapshotId"], partition["Position"]
        snapshot = self._snapshots.find(asked["EndOffset"], asked["Epoch"])
        if snapshot is None:
            return {"ErrorCode": KafkaCode.SNAPSHOT_NOT_FOUND}
        if not 0 <= position < snapshot.size:
            return {"ErrorCode": KafkaCode.POSITION_OUT_OF_RANGE}
        try:
            data = snapshot.read(position, max(max_bytes, 1))
        except OSError as error:
            self._log.error("kafka_snapshot_unreadable", name=snapshot.name, error=str(error))
            return {"ErrorCode": KafkaCode.KAFKA_STORAGE_ERROR}
        return {"ErrorCode": KafkaCode.NONE, "Size": snapshot.size, "UnalignedRecords": data}


def _partition_of(fields: Fields) -> Fields:
    """Return the one partition that may be asked for. Raises KafkaFailure."""
    topics = fields["Topics"]
    if len(topics) == 1 and len(topics[0]["Partitions"]) == 1 and topics[0]["Name"] == TOPIC:
        partition: Fields = topics[0]["Partitions"][0]
        if partition["Partition"] == 0:
            return partition
    raise KafkaFailure(KafkaCode.INVALID_REQUEST, f"fetch a snapshot of partition 0 of {TOPIC}")
