"""Records that are allowed only in snapshots. Ours.

Rule: in a log, replay learns these facts from a record's position: its offset, the end of its
batch, its epoch. Records in a snapshot have no position, so the snapshot states the facts. Replay
refuses these records in a log, where they could contradict the positions.
"""

from typing import ClassVar

from metadata.records.record import Record
from metadata.types import BrokerId, Int64, Uuid


class EpochStartRecord(Record, frozen=True, tag=100300):
    """The offset at which an epoch began, and its leader; in snapshots only. Ours."""

    TYPE_ID: ClassVar[int] = 1003
    VERSION: ClassVar[int] = 0
    SNAPSHOT_ONLY: ClassVar[bool] = True

    epoch: Int64
    offset: Int64
    """The offset of the epoch's BeginEpochRecord."""
    leader_id: BrokerId


class ShutdownOffsetRecord(Record, frozen=True, tag=100400):
    """The offset that a broker's controlled shutdown waits for; in snapshots only. Ours."""

    TYPE_ID: ClassVar[int] = 1004
    VERSION: ClassVar[int] = 0
    SNAPSHOT_ONLY: ClassVar[bool] = True

    broker_id: BrokerId
    offset: Int64
    """The end offset of the batch that began the shutdown."""


class OutcomeFloorRecord(Record, frozen=True, tag=100500):
    """The largest evicted request key; in snapshots only. Agents ignore it. Ours."""

    TYPE_ID: ClassVar[int] = 1005
    VERSION: ClassVar[int] = 0
    SNAPSHOT_ONLY: ClassVar[bool] = True

    key: Uuid
    """A request with this key or a smaller one may have been executed and forgotten."""
