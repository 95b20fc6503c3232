"""A group of small decisions of the leader: they share one delta and one published image.

Rule: each decision of a group reads what those before it decided, from an image over the open delta
(`MetadataDelta.opened`). The image that others may keep is built once, when the group is closed: at
the commit, when the group is full, or when somebody needs what only a built image has.

A batch that can't be replayed or proposed leaves nothing behind. The delta may hold a part of it,
so it is thrown away, and the batches before are replayed anew from their records.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ledger.batch import BatchHeader
from metadata.image import MetadataDelta, MetadataImage
from metadata.records import Record

GROUP_RECORDS_MAX: Final = 192
"""Building the image of so many records takes two or three milliseconds, in one go."""
GROUP_BYTES_MAX: Final = 256 * 1024
"""A Raft entry takes 1.25 MiB, so few groups are divided among entries."""


class _Taken(NamedTuple):
    records: Sequence[Record]
    header: BatchHeader


class OpenGroup:
    """The batches of one group, replayed over `base`."""

    def __init__(self, base: MetadataImage) -> None:
        self._base = base
        self._delta: MetadataDelta | None = MetadataDelta(base)
        self._taken: list[_Taken] = []
        self._records = 0
        self.image = base
        """With all batches so far. Until the group is closed it must not be kept."""

    def __len__(self) -> int:
        return len(self._taken)

    @property
    def is_open(self) -> bool:
        """The group takes more batches."""
        return self._delta is not None

    @property
    def is_full(self) -> bool:
        """Close the group: building more in one go would take too long."""
        return self._records >= GROUP_RECORDS_MAX

    def add(self, records: Sequence[Record], header: BatchHeader) -> None:
        """Replay a batch. Raises ReplayError, and then the group is as it was before."""
        assert self._delta is not None
        taken = _Taken(records, header)
        try:
            _replay(self._delta, taken)
        except Exception:
            self._begin_anew()
            raise
        self._taken.append(taken)
        self._records += len(records)
        self.image = self._delta.opened(self.close)

    def undo(self) -> None:
        """Take the last batch back: it was not proposed."""
        undone = self._taken.pop()
        self._records -= len(undone.records)
        self._begin_anew()

    def close(self) -> MetadataImage:
        """Build the image, which is `image` from now on. A closed group takes no batch."""
        if self._delta is not None:
            self.image = self._delta.apply()
            self._delta = None
            self._taken.clear()
        return self.image

    def _begin_anew(self) -> None:
        """Replay the batches again, without what the last one left in the delta."""
        self._delta = delta = MetadataDelta(self._base)
        for taken in self._taken:
            _replay(delta, taken)
        self.image = delta.opened(self.close) if self._taken else self._base


def _replay(delta: MetadataDelta, taken: _Taken) -> None:
    header = taken.header
    delta.replay_all(taken.records, header.base_offset)
    delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
