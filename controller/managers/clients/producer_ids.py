"""Hands out blocks of producer ids (KIP-730).

Rule: a block goes to a registered broker's current process, and begins where the last block ended.
So an id is never handed out twice, whatever brokers and controllers do.
"""

from typing import Final

from controller.managers.broker_states import registered
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import AllocateProducerIdsReply, AllocateProducerIdsRequest
from metadata.records import ProducerIdsRecord

BLOCK_IDS: Final = 1_000
_LAST: Final = 2**63 - 1


def allocate(image: MetadataImage, request: AllocateProducerIdsRequest) -> ControllerResult:
    """Hand out the next block. Raises LogbergError STALE_BROKER_EPOCH, UNKNOWN_SERVER_ERROR."""
    registered(image, request.broker_id, request.broker_epoch)
    start = image.producer_ids.next_producer_id
    if start > _LAST - BLOCK_IDS:
        raise LogbergError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "all producer ids are handed out: the next block would end above 2^63 - 1",
        )
    record = ProducerIdsRecord(request.broker_id, request.broker_epoch, start + BLOCK_IDS)
    reply = AllocateProducerIdsReply(start, BLOCK_IDS, dry_run=request.dry_run)
    return ControllerResult((record,), reply)
