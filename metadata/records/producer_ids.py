"""Records about blocks of producer ids (KIP-730)."""

from typing import ClassVar

from metadata.records.record import Record
from metadata.types import BrokerId, Int64


class ProducerIdsRecord(Record, frozen=True, tag=1500):
    """A block of producer ids went to a broker (KIP-730)."""

    TYPE_ID: ClassVar[int] = 15
    VERSION: ClassVar[int] = 0

    broker_id: BrokerId
    broker_epoch: Int64
    next_producer_id: Int64
    """The first id not yet handed out."""
