"""Requests and replies about the log directories of brokers (KIP-858).

`POST /v1/brokers/<id>/directories`. A broker reports in its heartbeat which directories work and
which are cordoned (`metadata.messages.fetch`).
"""

from typing import Annotated

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.message import ReplyMessage, RequestMessage, UuidText
from metadata.types import Int32, Int64

REPLICAS_PER_REQUEST = 2_000


class ReplicaInDirectory(RequestMessage, frozen=True):
    """The directory in which the broker holds a replica."""

    topic_id: UuidText
    partition: Int32
    directory: UuidText


class AssignReplicasRequest(RequestMessage, frozen=True):
    """A broker reports in which directories its replicas are (Kafka's AssignReplicasToDirs)."""

    cluster_id: str
    broker_epoch: Int64
    replicas: Annotated[
        tuple[ReplicaInDirectory, ...], Meta(min_length=1, max_length=REPLICAS_PER_REQUEST)
    ]
    incarnation_id: UuidText | None = None
    """Of the broker's process; null: the epoch alone says which process it is."""


class AssignedReplica(ReplyMessage, frozen=True, omit_defaults=True):
    """The result for one replica of the request."""

    topic_id: str
    partition: Int32
    error: ErrorReply | None = None


class AssignReplicasReply(ReplyMessage, frozen=True):
    """The results, in the order of the request."""

    replicas: tuple[AssignedReplica, ...]
    offset: int = -1
    epoch: int = -1
