"""Requests and replies about partitions: AlterPartition (KIP-497) and ElectLeaders (KIP-460).

`POST /v1/partitions/alter` comes from a partition's leader, which changes the ISR.
`POST /v1/partitions/elect` comes from an administrator. Rule: each partition of a request has a
result or an error of its own, and all that are accepted together are one change.
"""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.fetch import NodeId
from metadata.messages.message import Count, ReplyMessage, RequestMessage, UuidText
from metadata.types import Int32

ALTERED_MAX = 1_000
"""Partitions in one AlterPartition request."""
ELECTED_MAX = 10_000
"""Partitions that one ElectLeaders request names."""
_TOPICS_MAX = 10_000


class IsrMember(RequestMessage, frozen=True):
    """A member of the ISR that a leader asks for."""

    broker_id: NodeId
    broker_epoch: Annotated[int, Meta(ge=-1, le=2**63 - 1)] = -1
    """The epoch in which it fetches from the leader (KIP-903); -1: don't compare."""


class PartitionToAlter(RequestMessage, frozen=True):
    """One partition, as its leader knows it, and the ISR that the leader asks for."""

    partition_index: Int32
    leader_epoch: Int32
    partition_epoch: Int32
    new_isr_with_epochs: Annotated[tuple[IsrMember, ...], Meta(max_length=1_000)]
    leader_recovery_state: Annotated[int, Meta(ge=0, le=1)] = 0
    """0 recovered, 1 recovering from an unclean election (KIP-704)."""


class TopicToAlter(RequestMessage, frozen=True):
    """Partitions of one topic: name it by its id or by its name."""

    partitions: Annotated[tuple[PartitionToAlter, ...], Meta(min_length=1, max_length=ALTERED_MAX)]
    topic_id: UuidText | None = None
    topic_name: Annotated[str, Meta(max_length=249)] | None = None


class AlterPartitionRequest(RequestMessage, frozen=True):
    """A broker changes the ISRs of partitions that it leads."""

    cluster_id: str
    broker_id: NodeId
    broker_epoch: Annotated[int, Meta(ge=-1, le=2**63 - 1)]
    topics: Annotated[tuple[TopicToAlter, ...], Meta(min_length=1, max_length=ALTERED_MAX)]
    incarnation_id: UuidText | None = None
    """Of the broker's process; null: the epoch alone says which process it is."""


class AlteredPartition(ReplyMessage, frozen=True):
    """The result for one partition: its state after the change, or an error."""

    partition_index: Int32
    error: ErrorReply | None = None
    leader_id: int = -1
    leader_epoch: Int32 = -1
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: Int32 = -1


class AlteredTopic(ReplyMessage, frozen=True):
    """The partitions of one topic, in the order of the request."""

    partitions: tuple[AlteredPartition, ...]
    topic_id: str | None = None
    topic_name: str | None = None


class AlterPartitionReply(ReplyMessage, frozen=True):
    """The results in the order of the request, and the log's end after the change."""

    topics: tuple[AlteredTopic, ...]
    offset: int = -1
    """The log's end after the change."""
    epoch: int = -1


class ElectionType(StrEnum):
    """The kind of election."""

    PREFERRED = "PREFERRED"
    """Elect the first replica of each partition, if it is in sync."""
    UNCLEAN = "UNCLEAN"
    """Elect any replica for partitions without a leader. Writes may be lost."""


class TopicPartitions(RequestMessage, frozen=True):
    """Partitions of one topic."""

    topic: Annotated[str, Meta(max_length=249)]
    partitions: Annotated[tuple[Int32, ...], Meta(max_length=ELECTED_MAX)]


_ManyTopics = Annotated[tuple[TopicPartitions, ...], Meta(max_length=_TOPICS_MAX)]


class ElectLeadersRequest(RequestMessage, frozen=True):
    """Elect leaders for these partitions, or for all partitions that need an election."""

    election_type: ElectionType
    topic_partitions: (
        Annotated[tuple[TopicPartitions, ...], Meta(max_length=_TOPICS_MAX)] | None
    ) = None
    """null: all partitions. Those that need no election are left out of the answer."""
    dry_run: bool = False


class ElectedPartition(ReplyMessage, frozen=True):
    """One partition, and its new leader or why it has none."""

    partition_id: Int32
    leader_id: int = -1
    error: ErrorReply | None = None


class ElectedTopic(ReplyMessage, frozen=True):
    """The partitions of one topic."""

    topic: str
    partition_result: tuple[ElectedPartition, ...]


class ElectLeadersReply(ReplyMessage, frozen=True):
    """The results, and the log's end after the change."""

    replica_election_results: tuple[ElectedTopic, ...]
    """At most 2,000 partitions if all were asked for; the counts are of all."""
    elected: Count = 0
    failed: Count = 0
    """Partitions with an error."""
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
