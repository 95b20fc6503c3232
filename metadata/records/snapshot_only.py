"""Facts of an image that no record of the log says in full; they stand in snapshots only. Ours.

Rule: replay gets these facts from where a record stands (its offset, its batch's end, its epoch).
A snapshot's records stand nowhere, so a snapshot writes the facts out. In a log they are refused:
there they would be a second word on what the log's own order says.
"""

from typing import ClassVar

from metadata.records.record import Record
from metadata.types import BrokerId, Int64, Uuid


class EpochStartRecord(Record, frozen=True, tag=100300):
    """Where an epoch began and who led it; in snapshots only. Ours."""

    TYPE_ID: ClassVar[int] = 1003
    VERSION: ClassVar[int] = 0
    SNAPSHOT_ONLY: ClassVar[bool] = True

    epoch: Int64
    offset: Int64
    """Of the epoch's BeginEpochRecord."""
    leader_id: BrokerId


class ShutdownOffsetRecord(Record, frozen=True, tag=100400):
    """What a broker's controlled shutdown waits for; in snapshots only. Ours."""

    TYPE_ID: ClassVar[int] = 1004
    VERSION: ClassVar[int] = 0
    SNAPSHOT_ONLY: ClassVar[bool] = True

    broker_id: BrokerId
    offset: Int64
    """The end offset of the batch that began the shutdown."""


class OutcomeFloorRecord(Record, frozen=True, tag=100500):
    """The largest request key that was let go; in snapshots only. Agents drop it. Ours."""

    TYPE_ID: ClassVar[int] = 1005
    VERSION: ClassVar[int] = 0
    SNAPSHOT_ONLY: ClassVar[bool] = True

    key: Uuid
    """A request with this key or a smaller one may have been executed and forgotten."""
