"""What the loss of brokers would change: `GET /v1/what-if/loss`.

Rule: the controller writes nothing. The answer names the offset of the state that it is about.
"""

from typing import Any

from metadata.messages.message import Count, ReplyMessage
from metadata.types import Int32


class LostPartition(ReplyMessage, frozen=True):
    """One partition before and after the loss."""

    topic: str
    partition: Int32
    leader: int
    leader_after: int
    """-1: there is none."""
    isr: tuple[int, ...]
    isr_after: tuple[int, ...]
    leaderless: bool = False
    under_min_isr: bool = False
    """Fewer replicas would be in sync than the partition needs to take writes."""
    changes: tuple[dict[str, Any], ...] = ()
    """The records that would be written; see `metadata.messages.records_json`."""


class LossReply(ReplyMessage, frozen=True):
    """The records that the loss of these brokers would write, and the problems after it."""

    offset: int
    epoch: int
    brokers: tuple[int, ...]
    """The brokers that would be lost."""
    broker_changes: tuple[dict[str, Any], ...]
    """The records that would fence them."""
    touched: Count
    """Partitions that have a replica on one of them."""
    changed: Count
    """Partitions for which a record would be written."""
    leaderless: Count
    under_min_isr: Count
    partitions: tuple[LostPartition, ...] = ()
    """Partitions without a leader or under their min ISR, or all that change."""
    age_ms: int | None = 0
