"""Which keys of subjects were destroyed, and which pseudonyms stand for names (ADR 0093).

Rule: a number never comes back. A subject that gets values again after its erasure has another
number. An erasure ends the pseudonym with its number, so a person who comes back gets another one.
`order` is derived from `pseudonyms`, and is in no snapshot.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_text
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself, replays
from metadata.pseudonyms import number_of_pseudonym, pseudonym_of
from metadata.records import PseudonymRecord, SubjectErasedRecord
from metadata.records.erasure import SEALED_FROM
from metadata.subject_keys import NUMBER_BYTES


class ErasuresImage(msgspec.Struct, frozen=True):
    """All erasures."""

    erased: BucketMap[str, SubjectErasedRecord]
    """By the first of the numbers, in hex."""
    pseudonyms: BucketMap[str, PseudonymRecord]
    """By the pseudonym."""
    order: SortedKeys[str]
    """The pseudonyms, in order."""

    def has(self, number: bytes) -> bool:
        """Return whether the subject with this number is erased."""
        return number.hex() in self.erased

    @property
    def addresses(self) -> int:
        """How many erasures of an address there were."""
        erased = self.erased.unordered_items()
        return sum(record.subject.startswith(SEALED_FROM) for _, record in erased)


EMPTY_ERASURES = ErasuresImage(BucketMap(mix_text), BucketMap(mix_text), SortedKeys())


class ErasuresDelta:
    """Replays erasures."""

    def __init__(self, image: ErasuresImage) -> None:
        self._order = image.order
        self.erased = Overlay(image.erased)
        self.pseudonyms = Overlay(image.pseudonyms)

    def apply_in_steps(self) -> Generator[None, None, ErasuresImage]:
        return ErasuresImage(
            (yield from self.erased.apply_in_steps()),
            (yield from self.pseudonyms.apply_in_steps()),
            (yield from self._order.changing(self.pseudonyms.changed)),
        )

    @replays(SubjectErasedRecord)
    def erase(self, record: SubjectErasedRecord, offset: int) -> None:
        """Note the numbers of keys that are destroyed."""
        if not record.numbers or any(len(each) != NUMBER_BYTES for each in record.numbers):
            raise ReplayError(offset, f"the erasure of {record.subject!r} names no keys")
        self.erased.set(record.numbers[0].hex(), record)
        for number in record.numbers:
            pseudonym = pseudonym_of(number)
            if pseudonym in self.pseudonyms:
                self.pseudonyms.remove(pseudonym)

    @replays(PseudonymRecord)
    def name(self, record: PseudonymRecord, offset: int) -> None:
        """Note that a pseudonym stands for a name."""
        number = number_of_pseudonym(record.pseudonym)
        if number is None or record.pseudonym in self.pseudonyms or number.hex() in self.erased:
            raise ReplayError(offset, f"{record.pseudonym!r} is no new pseudonym")
        self.pseudonyms.set(record.pseudonym, record)


TABLES: Final = (
    ImageTable("erasures", "erasures", "erased", itself, "erasure"),
    ImageTable("pseudonyms", "erasures", "pseudonyms", itself, "pseudonym", ("pseudonym",)),
)
