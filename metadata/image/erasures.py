"""Which keys of subjects were destroyed, by their numbers (ADR 0093).

Rule: a number never comes back. A subject that gets values again after its erasure has another
number.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_text
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.table import ImageTable, itself, replays
from metadata.records import SubjectErasedRecord
from metadata.records.erasure import SEALED_FROM
from metadata.subject_keys import NUMBER_BYTES


class ErasuresImage(msgspec.Struct, frozen=True):
    """All erasures."""

    erased: BucketMap[str, SubjectErasedRecord]
    """By the first of the numbers, in hex."""

    def has(self, number: bytes) -> bool:
        """Return whether the subject with this number is erased."""
        return number.hex() in self.erased

    @property
    def addresses(self) -> int:
        """How many erasures of an address there were."""
        erased = self.erased.unordered_items()
        return sum(record.subject.startswith(SEALED_FROM) for _, record in erased)


EMPTY_ERASURES = ErasuresImage(BucketMap(mix_text))


class ErasuresDelta:
    """Replays erasures."""

    def __init__(self, image: ErasuresImage) -> None:
        self.erased = Overlay(image.erased)

    def apply_in_steps(self) -> Generator[None, None, ErasuresImage]:
        return ErasuresImage((yield from self.erased.apply_in_steps()))

    @replays(SubjectErasedRecord)
    def erase(self, record: SubjectErasedRecord, offset: int) -> None:
        """Note the numbers of keys that are destroyed."""
        if not record.numbers or any(len(each) != NUMBER_BYTES for each in record.numbers):
            raise ReplayError(offset, f"the erasure of {record.subject!r} names no keys")
        self.erased.set(record.numbers[0].hex(), record)


TABLES: Final = (ImageTable("erasures", "erasures", "erased", itself, "erasure"),)
