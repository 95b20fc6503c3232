"""The keys with which voters sign heads of the log, and the newest head that a majority signed.

Rule: brokers hold both. So whoever has an image can tell which keys count, and has a head that it
can keep and compare with a later log (ADR 0087). The image checks no signature: the leader did
before it wrote the record.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_int, mix_text
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.table import ImageTable, itself, replays
from metadata.records import HeadKeyCause, HeadKeyRecord, SignedHeadRecord

_NEWEST: Final = "newest"


class HeadsImage(msgspec.Struct, frozen=True):
    """Keys and the newest head."""

    keys: BucketMap[int, HeadKeyRecord]
    """By controller id: the newest record about its key."""
    signed: BucketMap[str, SignedHeadRecord]

    @property
    def newest(self) -> SignedHeadRecord | None:
        """The newest head in the log; None: there is none yet."""
        return self.signed.get(_NEWEST)


EMPTY_HEADS = HeadsImage(BucketMap(mix_int), BucketMap(mix_text))


class HeadsDelta:
    """Replays the records of heads."""

    def __init__(self, image: HeadsImage) -> None:
        self.keys = Overlay(image.keys)
        self.signed = Overlay(image.signed)

    def apply_in_steps(self) -> Generator[None, None, HeadsImage]:
        return HeadsImage(
            (yield from self.keys.apply_in_steps()), (yield from self.signed.apply_in_steps())
        )

    @replays(HeadKeyRecord)
    def set_key(self, record: HeadKeyRecord, offset: int) -> None:
        """Note a voter's key, or that it is gone."""
        if record.cause != HeadKeyCause.REMOVED:
            self.keys.set(record.controller_id, record)
        elif record.controller_id in self.keys:
            self.keys.remove(record.controller_id)
        else:
            raise ReplayError(offset, f"controller {record.controller_id} has no key to remove")

    @replays(SignedHeadRecord)
    def set_signed(self, record: SignedHeadRecord, offset: int) -> None:
        """Note the newest head."""
        before = self.signed.get(_NEWEST)
        if record.size <= (0 if before is None else before.size):
            raise ReplayError(offset, f"a newer head of {record.size} batches is in the log")
        self.signed.set(_NEWEST, record)


TABLES: Final = (
    ImageTable("head_keys", "heads", "keys", itself, "head-key", ("controller_id",)),
    ImageTable("signed_heads", "heads", "signed", itself, "signed-head"),
)
