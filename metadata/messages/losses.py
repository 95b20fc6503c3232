"""What losing brokers would do. `GET /v1/what-if/loss`.

Rule: nothing is written, and the answer says of which state it speaks.
"""

from typing import Any

from metadata.messages.message import Count, ReplyMessage
from metadata.types import Int32


class LostPartition(ReplyMessage, frozen=True):
    """What would become of one partition."""

    topic: str
    partition: Int32
    leader: int
    leader_after: int
    """-1: none."""
    isr: tuple[int, ...]
    isr_after: tuple[int, ...]
    leaderless: bool = False
    under_min_isr: bool = False
    """Fewer replicas in sync are left than it needs to take writes."""
    changes: tuple[dict[str, Any], ...] = ()
    """The records that would be written; see `metadata.messages.records_json`."""


class LossReply(ReplyMessage, frozen=True):
    """What would be written if these brokers were lost, and what would be out of order then."""

    offset: int
    epoch: int
    brokers: tuple[int, ...]
    """Those that are lost."""
    broker_changes: tuple[dict[str, Any], ...]
    """The records that would fence them."""
    touched: Count
    """Partitions that have a replica on one of them."""
    changed: Count
    """Partitions of which a record would be written."""
    leaderless: Count
    under_min_isr: Count
    partitions: tuple[LostPartition, ...] = ()
    """Those without a leader or under their min ISR, or all that change."""
    age_ms: int | None = 0
