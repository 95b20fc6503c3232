"""Requests and replies about reassignments, which move partitions to other replicas (KIP-455).

`POST /v1/reassignments`, `GET /v1/reassignments`, `GET /v1/reassignments/plan`. Rule: the
controller decides each partition by itself, and the results have the order of the request. It
writes a request with many partitions in rounds; the state after each round is valid.
"""

from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.message import ReplyMessage, RequestMessage
from metadata.types import BrokerId, Int32

REASSIGNMENTS_PER_REQUEST = 50_000
"""Beside it, a body may have 4 MiB."""


class Reassignment(RequestMessage, frozen=True):
    """The wanted replicas of one partition."""

    topic: str
    partition: Int32
    replicas: tuple[BrokerId, ...] | None = None
    """All replicas afterwards, the preferred leader first; null: cancel a running reassignment."""


class AlterReassignmentsRequest(RequestMessage, frozen=True):
    """Start, replace or cancel reassignments."""

    partitions: Annotated[
        tuple[Reassignment, ...], Meta(min_length=1, max_length=REASSIGNMENTS_PER_REQUEST)
    ]
    allow_replication_factor_change: bool = True
    """false: refuse a list whose length differs from the present one (KIP-860)."""
    dry_run: bool = False


class AlteredReassignment(ReplyMessage, frozen=True, omit_defaults=True):
    """The result for one partition of the request."""

    topic: str
    partition: Int32
    error: ErrorReply | None = None


class AlterReassignmentsReply(ReplyMessage, frozen=True):
    """The results in the order of the request, and the log's end after the last change."""

    partitions: tuple[AlteredReassignment, ...]
    offset: int = -1
    """The log's end after the change. A read with this `minOffset` sees the change."""
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class RunningReassignment(ReplyMessage, frozen=True):
    """One partition with a running reassignment."""

    topic: str
    partition: Int32
    replicas: tuple[int, ...]
    """The wanted replicas, then those that the reassignment removes."""
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    isr: tuple[int, ...]
    waiting_for: tuple[int, ...] = ()
    """Wanted replicas that are not in sync yet."""


class ListReassignmentsReply(ReplyMessage, frozen=True):
    """Running reassignments by topic and partition, from one image."""

    offset: int
    epoch: int
    partitions: tuple[RunningReassignment, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there may be more: ask again with it as `continuation`, for the same image."""


class PlannedReassignment(ReplyMessage, frozen=True):
    """One partition of a plan."""

    topic: str
    partition: Int32
    replicas: tuple[int, ...]
    """The replicas for a `Reassignment` of this partition."""
    before: tuple[int, ...] = ()


class PlanReply(ReplyMessage, frozen=True):
    """The reassignments after which some brokers hold no replica."""

    offset: int
    epoch: int
    brokers: tuple[int, ...]
    """The brokers that the plan empties."""
    partitions: tuple[PlannedReassignment, ...]
    age_ms: int | None = 0
