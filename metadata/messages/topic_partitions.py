"""Requests and replies about partitions of topics that exist.

`POST /v1/partitions`, `GET /v1/partitions`, `GET /v1/partitions/<topic>/<number>`. Rule: the
controller decides each topic of a request by itself, and the results have the order of the request.
The changes of all topics that were accepted are one atomic change.
"""

from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.findings import Explanation
from metadata.messages.message import ReplyMessage, RequestMessage
from metadata.messages.topics import TOPICS_PER_REQUEST, PartitionDescription
from metadata.types import BrokerId, Int32


class NewPartitions(RequestMessage, frozen=True):
    """Partitions to add to one topic."""

    name: str
    count: Int32
    """How many partitions the topic has afterwards."""
    assignments: tuple[tuple[BrokerId, ...], ...] | None = None
    """The replicas of each added partition, in order; null: the controller places them."""


class CreatePartitionsRequest(RequestMessage, frozen=True):
    """Add partitions to these topics."""

    topics: Annotated[tuple[NewPartitions, ...], Meta(min_length=1, max_length=TOPICS_PER_REQUEST)]
    dry_run: bool = False
    """Decide and answer, with the records, but write nothing (Kafka's validateOnly)."""


class CreatedPartitions(ReplyMessage, frozen=True):
    """The result for one topic of a CreatePartitionsRequest."""

    name: str
    error: ErrorReply | None = None
    count: int = -1
    """How many partitions the topic has now."""
    added: int = 0


class CreatePartitionsReply(ReplyMessage, frozen=True):
    """The results, and the log's end after the change."""

    topics: tuple[CreatedPartitions, ...]
    offset: int = -1
    """The log's end after the change. A read with this `minOffset` sees the change."""
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
    """With `dry_run`: the records that would be written; see `metadata.messages.records_json`."""


class ListedPartition(PartitionDescription, frozen=True):
    """One partition in a list."""

    topic: str = ""


class ListPartitionsReply(ReplyMessage, frozen=True):
    """Partitions by topic and number, from one image."""

    offset: int
    epoch: int
    partitions: tuple[ListedPartition, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there may be more: ask again with it as `continuation`, for the same image."""


class DescribePartitionReply(ReplyMessage, frozen=True):
    """One partition, and why it is as it is."""

    offset: int
    epoch: int
    topic: str
    topic_id: str
    partition: PartitionDescription
    findings: tuple[Explanation, ...] = ()
    """What is not in order, and what would help; empty: nothing is wrong."""
    age_ms: int | None = 0
