"""Blocks of producer ids. `POST /v1/producer-ids` (KIP-730)."""

from typing import Any

from metadata.messages.message import ReplyMessage, RequestMessage
from metadata.types import BrokerId, Int64


class AllocateProducerIdsRequest(RequestMessage, frozen=True):
    """A broker asks for its next block."""

    broker_id: BrokerId
    broker_epoch: Int64
    dry_run: bool = False


class AllocateProducerIdsReply(ReplyMessage, frozen=True):
    """The block of ids. Only this broker gets them."""

    producer_id_start: int
    producer_id_len: int
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
