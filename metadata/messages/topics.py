"""Requests and replies about topics.

`POST /v1/topics`, `GET /v1/topics`, `GET /v1/topics/<name>`, `DELETE /v1/topics/<name>`.
Rule: the controller decides each topic of a request by itself, and the results have the order of
the request. All topics that a request creates are one atomic change. Those that it deletes go in
rounds: each topic goes as a whole, and other changes come in between.
"""

from typing import Annotated, Any

from msgspec import Meta, field

from metadata.messages.errors import ErrorReply
from metadata.messages.message import Count, ReplyMessage, RequestMessage, UuidText
from metadata.types import BrokerId, Int16, Int32

TOPICS_PER_REQUEST = 10_000


class ReplicaAssignment(RequestMessage, frozen=True):
    """The brokers for one partition's replicas; the first is the preferred leader."""

    partition_index: Int32
    broker_ids: tuple[BrokerId, ...]


class NewTopic(RequestMessage, frozen=True):
    """A topic to create. The controller checks its name and numbers; the decoder does not."""

    name: str
    num_partitions: Int32 = -1
    """-1: the number of `assignments`, or without them the cluster's default."""
    replication_factor: Int16 = -1
    """-1: that of `assignments`, or without them the cluster's default."""
    assignments: tuple[ReplicaAssignment, ...] = ()
    """Empty: the controller places the replicas."""
    configs: dict[str, str | None] = field(default_factory=dict)


class CreateTopicsRequest(RequestMessage, frozen=True):
    """Create these topics."""

    topics: Annotated[tuple[NewTopic, ...], Meta(min_length=1, max_length=TOPICS_PER_REQUEST)]
    dry_run: bool = False
    """Decide, and answer with the records, but write nothing (Kafka's validateOnly)."""


class DeleteTopicsRequest(RequestMessage, frozen=True):
    """Delete topics, named by `names` or by `topic_ids`, not by both."""

    names: Annotated[tuple[str, ...], Meta(max_length=TOPICS_PER_REQUEST)] = ()
    topic_ids: Annotated[tuple[UuidText, ...], Meta(max_length=TOPICS_PER_REQUEST)] = ()
    dry_run: bool = False


class PartitionDescription(ReplyMessage, frozen=True):
    """One partition of the image; brokers by id."""

    partition: Int32
    leader: int
    """-1: there is none."""
    leader_epoch: Int32
    partition_epoch: Int32
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    """The replicas whose brokers are fenced or not registered."""
    leader_recovery_state: str = "RECOVERED"
    directories: tuple[str, ...] = ()


class TopicDescription(ReplyMessage, frozen=True):
    """One topic with all its partitions."""

    name: str
    topic_id: str
    partitions: tuple[PartitionDescription, ...]
    configs: dict[str, str] = field(default_factory=dict)


class TopicSummary(ReplyMessage, frozen=True):
    """One topic in a list."""

    name: str
    topic_id: str
    partition_count: Count
    replication_factor: Count
    """The number of replicas of partition 0."""
    leaderless: Count = 0
    under_replicated: Count = 0


class CreatedTopic(ReplyMessage, frozen=True):
    """The result for one topic of a CreateTopicsRequest."""

    name: str
    error: ErrorReply | None = None
    topic_id: str | None = None
    num_partitions: int = -1
    replication_factor: int = -1
    partitions: tuple[PartitionDescription, ...] = ()


class DeletedTopic(ReplyMessage, frozen=True):
    """The result for one topic of a DeleteTopicsRequest."""

    name: str | None
    topic_id: str | None
    error: ErrorReply | None = None


class CreateTopicsReply(ReplyMessage, frozen=True):
    """The results in the order of the request, and the log's end after the change."""

    topics: tuple[CreatedTopic, ...]
    offset: int = -1
    """The log's end after the change. A read with this `minOffset` sees the change."""
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
    """With `dry_run`: the records that would be written; see `metadata.messages.records_json`."""


class DeleteTopicsReply(ReplyMessage, frozen=True):
    """The results in the order of the request, and the log's end after the change."""

    topics: tuple[DeletedTopic, ...]
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class ListTopicsReply(ReplyMessage, frozen=True):
    """Topics in the order of their names, from one image."""

    offset: int
    """The image's offset: the answer reflects all records before it."""
    epoch: int
    topics: tuple[TopicSummary, ...]
    age_ms: int | None = 0
    """Of a stale read: how many ms ago the answer was certainly current. A leader counts from the
    last time that a majority confirmed its leadership. null: unknown, because this controller has
    heard from no leader since it started."""
    next_after: str | None = None
    """Set if there are more: ask for the topics after this name."""
    continuation: str | None = None
    """Set if there are more: ask again with it as `continuation`. All pages are from one image."""


class DescribeTopicsReply(ReplyMessage, frozen=True):
    """Topics with their partitions, from one image."""

    offset: int
    epoch: int
    topics: tuple[TopicDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there are more: ask again with it as `continuation`. All pages are from one image."""
