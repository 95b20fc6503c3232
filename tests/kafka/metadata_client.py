"""A Kafka client of one server, in blocking calls: who leads, the metadata log, a snapshot.

Rule: what is read comes over the wire, as brokers read it, so our controllers and stock KRaft are
asked in the same way. One request is under way at a time.
"""

import socket
import ssl
from typing import Final, NamedTuple

from kafka_listener.serving.frames import FrameBuffer, framed
from kafka_listener.wire.messages import (
    RequestHeader,
    decode_response,
    decode_response_header,
    encode_request,
    encode_request_header,
)
from kafka_listener.wire.record_batches import decode_batches
from kafka_listener.wire.schema import Fields

FETCH: Final = 1
METADATA: Final = 3
DESCRIBE_QUORUM: Final = 55
FETCH_SNAPSHOT: Final = 59
TOPIC_ID: Final = bytes(15) + b"\x01"
_MOST_BYTES: Final = 256 * 1024 * 1024
_READ: Final = 1 << 20


class LeaderSeen(NamedTuple):
    """Who leads, as one controller says."""

    node_id: int
    """-1: it knows nobody."""
    epoch: int


class SnapshotName(NamedTuple):
    """The id of a snapshot."""

    end_offset: int
    epoch: int


class LogRead(NamedTuple):
    """The metadata log from some offset to the high watermark."""

    snapshot: SnapshotName | None
    """The log begins behind it; None: it begins at offset 0."""
    data: bytes
    end: int


class MetadataClient:
    """One connection."""

    def __init__(
        self, address: str, timeout_s: float = 5.0, tls: ssl.SSLContext | None = None
    ) -> None:
        """Raises OSError."""
        host, _, port = address.rpartition(":")
        plain = socket.create_connection((host, int(port)), timeout_s)
        self._socket = plain if tls is None else tls.wrap_socket(plain, server_hostname=host)
        self._frames = FrameBuffer()
        self._correlation_id = 0

    def __enter__(self) -> "MetadataClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, api_key: int, version: int, fields: Fields) -> Fields:
        """Return the answer to a request. Raises OSError."""
        self._correlation_id += 1
        header = RequestHeader(api_key, version, self._correlation_id, "logberg-tests")
        self._socket.sendall(
            framed(encode_request_header(header), encode_request(api_key, version, fields))
        )
        while (frame := self._frames.take(_MOST_BYTES)) is None:
            more = self._socket.recv(_READ)
            if not more:
                raise ConnectionResetError("the server closed the connection")
            self._frames.feed(more)
        _, body_at = decode_response_header(api_key, version, frame)
        return decode_response(api_key, version, frame, body_at)

    def fetch(self, offset: int, last_epoch: int, epoch: int) -> Fields:
        """Return the partition of a Fetch answer."""
        asked = {
            "Partition": 0,
            "CurrentLeaderEpoch": epoch,
            "FetchOffset": offset,
            "LastFetchedEpoch": last_epoch,
            "PartitionMaxBytes": 0,
        }
        fields = {
            "ReplicaState": {"ReplicaId": -1, "ReplicaEpoch": -1},
            "MaxWaitMs": 0,
            "MinBytes": 0,
            "MaxBytes": _READ,
            "Topics": [{"TopicId": TOPIC_ID, "Partitions": [asked]}],
        }
        answer = self.ask(FETCH, 17, fields)
        if answer["ErrorCode"]:
            raise ConnectionRefusedError(f"Fetch failed as a whole: {answer['ErrorCode']}")
        found: Fields = answer["Responses"][0]["Partitions"][0]
        return found

    def leader(self) -> LeaderSeen:
        """Ask who leads. A replica in an old epoch always learns that."""
        said = self.fetch(0, 0, 0)["CurrentLeader"]
        return LeaderSeen(said["LeaderId"], said["LeaderEpoch"])

    def read_log(self) -> LogRead:
        """Read the log of the leader, from its start. Raises ConnectionRefusedError."""
        epoch = self.leader().epoch
        offset = last_epoch = 0
        snapshot: SnapshotName | None = None
        data = bytearray()
        while True:
            partition = self.fetch(offset, last_epoch, epoch)
            if partition["ErrorCode"]:
                raise ConnectionRefusedError(f"Fetch failed: {partition['ErrorCode']}")
            named = partition["SnapshotId"]
            if named["EndOffset"] >= 0:
                assert not data, f"the log changed its start while it was read: {named}"
                snapshot = SnapshotName(named["EndOffset"], named["Epoch"])
                offset, last_epoch = snapshot
            for batch in decode_batches(partition["Records"] or b""):
                offset = batch.base_offset + len(batch.records)
                last_epoch = batch.epoch
            data += partition["Records"] or b""
            if offset >= partition["HighWatermark"] >= 0:
                return LogRead(snapshot, bytes(data), offset)

    def read_snapshot(self, name: SnapshotName) -> bytes:
        """Read a whole snapshot of the leader. Raises ConnectionRefusedError."""
        epoch = self.leader().epoch
        data = bytearray()
        while True:
            asked = {
                "Partition": 0,
                "CurrentLeaderEpoch": epoch,
                "SnapshotId": {"EndOffset": name.end_offset, "Epoch": name.epoch},
                "Position": len(data),
            }
            fields = {
                "MaxBytes": _READ,
                "Topics": [{"Name": "__cluster_metadata", "Partitions": [asked]}],
            }
            partition = self.ask(FETCH_SNAPSHOT, 1, fields)["Topics"][0]["Partitions"][0]
            if partition["ErrorCode"]:
                raise ConnectionRefusedError(f"FetchSnapshot failed: {partition['ErrorCode']}")
            data += partition["UnalignedRecords"]
            if len(data) >= partition["Size"]:
                return bytes(data)


def leader_of(addresses: list[str], timeout_s: float = 1.0) -> LeaderSeen:
    """Return the newest leader that any of the controllers knows; node -1: none says one."""
    newest = LeaderSeen(-1, -1)
    for address in addresses:
        try:
            with MetadataClient(address, timeout_s) as client:
                newest = max(newest, client.leader(), key=lambda seen: (seen.epoch, seen.node_id))
        except OSError:
            continue
    return newest
