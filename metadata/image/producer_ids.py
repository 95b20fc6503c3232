"""The next producer id to hand out (KIP-730).

Rule: the next id only grows. Otherwise two producers would get the same id.
"""

from collections.abc import Callable, Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_text
from metadata.image.open_maps import OpenMap
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.table import ImageTable, itself, replays
from metadata.records import ProducerIdsRecord

_LAST = "last"


class ProducerIdsImage(msgspec.Struct, frozen=True):
    """The last block of ids that was handed out, if there is one."""

    blocks: BucketMap[str, ProducerIdsRecord]

    @property
    def last(self) -> ProducerIdsRecord | None:
        """The record of the last block: its broker, and the first id after the block."""
        return self.blocks.get(_LAST)

    @property
    def next_producer_id(self) -> int:
        """The first id that has not been handed out."""
        last = self.last
        return 0 if last is None else last.next_producer_id


EMPTY_PRODUCER_IDS = ProducerIdsImage(BucketMap(mix_text))


class ProducerIdsDelta:
    """Replays the records of producer id blocks."""

    def __init__(self, image: ProducerIdsImage) -> None:
        self.blocks = Overlay(image.blocks)

    def apply_in_steps(self) -> Generator[None, None, ProducerIdsImage]:
        return ProducerIdsImage((yield from self.blocks.apply_in_steps()))

    def opened(self, built: Callable[[], ProducerIdsImage]) -> ProducerIdsImage:
        """Return the image of what was replayed so far (see `open_maps`)."""
        return ProducerIdsImage(OpenMap(self.blocks, lambda: built().blocks))

    @replays(ProducerIdsRecord)
    def hand_out(self, record: ProducerIdsRecord, offset: int) -> None:
        """Note that a broker got a block of ids."""
        last = self.blocks.get(_LAST)
        handed_out = 0 if last is None else last.next_producer_id
        if record.next_producer_id <= handed_out:
            raise ReplayError(
                offset,
                f"the next producer id would be {record.next_producer_id}, "
                f"but the ids below {handed_out} are handed out already",
            )
        self.blocks.set(_LAST, record)


TABLES: Final = (ImageTable("producer_ids", "producer_ids", "blocks", itself, "producer-ids"),)
