"""Records about blocks of producer ids (KIP-730)."""

from typing import ClassVar

from metadata.records.declaring import Columns, KnownNames
from metadata.records.record import Record
from metadata.types import BrokerId, Int64


class ProducerIdsRecord(Record, frozen=True, tag=1500):
    """Gives a block of producer ids to a broker (KIP-730)."""

    TYPE_ID: ClassVar[int] = 15
    VERSION: ClassVar[int] = 0
    COLUMNS: ClassVar[Columns] = {"broker_id": "broker_id", "broker_epoch": "broker_epoch"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("producer-ids", "broker")

    broker_id: BrokerId
    broker_epoch: Int64
    next_producer_id: Int64
    """The first id that has not been handed out."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return ("producer-ids", f"broker:{self.broker_id}")
