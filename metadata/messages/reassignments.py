"""Requests and replies about reassignments: partitions on their way to other replicas (KIP-455).

`POST /v1/reassignments`, `GET /v1/reassignments`, `GET /v1/reassignments/plan`. Rule: each
partition is judged by itself, and the results stand in the order of the request. A request of many
partitions is written in rounds; each of them is a valid state.
"""

from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.message import ReplyMessage, RequestMessage
from metadata.types import BrokerId, Int32

REASSIGNMENTS_PER_REQUEST = 10_000


class Reassignment(RequestMessage, frozen=True):
    """Where one partition's replicas shall be."""

    topic: str
    partition: Int32
    replicas: tuple[BrokerId, ...] | None = None
    """All replicas when it is done, the preferred leader first; null: cancel a running one."""


class AlterReassignmentsRequest(RequestMessage, frozen=True):
    """Start, replace or cancel reassignments."""

    partitions: Annotated[
        tuple[Reassignment, ...], Meta(min_length=1, max_length=REASSIGNMENTS_PER_REQUEST)
    ]
    allow_replication_factor_change: bool = True
    """false: a list of another length than now is refused (KIP-860)."""
    dry_run: bool = False


class AlteredReassignment(ReplyMessage, frozen=True, omit_defaults=True):
    """What became of one partition of the request."""

    topic: str
    partition: Int32
    error: ErrorReply | None = None


class AlterReassignmentsReply(ReplyMessage, frozen=True):
    """The results, and where in the log the last of them is."""

    partitions: tuple[AlteredReassignment, ...]
    offset: int = -1
    """The log's end after the change: give it as `minOffset` to read your own write."""
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class RunningReassignment(ReplyMessage, frozen=True):
    """One partition on its way."""

    topic: str
    partition: Int32
    replicas: tuple[int, ...]
    """The wanted ones, then those that leave."""
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
    """There may be more: ask again with this as `continuation`; all pages are from one image."""


class PlannedReassignment(ReplyMessage, frozen=True):
    """One partition of a plan."""

    topic: str
    partition: Int32
    replicas: tuple[int, ...]
    """As a Reassignment gives them."""
    before: tuple[int, ...] = ()


class PlanReply(ReplyMessage, frozen=True):
    """What to ask for so that some brokers hold no replica any more."""

    offset: int
    epoch: int
    brokers: tuple[int, ...]
    """The brokers that the plan empties."""
    partitions: tuple[PlannedReassignment, ...]
    age_ms: int | None = 0
