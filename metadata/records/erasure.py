"""Records about the keys of subjects: which tree of keys counts, and which were destroyed. Ours.

Rule: no key is in the log, in clear or sealed. A record names keys by numbers that say nothing to
whoever lacks the cluster key (`metadata.subject_keys`, ADR 0093).
"""

from typing import ClassVar, Final

from metadata.features import ERASURE_FROM, LOGBERG_VERSION
from metadata.records.declaring import Columns, KnownNames, Need, Privileged
from metadata.records.record import Record

SEALED_FROM: Final = "from:sealed-"
"""With a number in hex, it stands for an address that is a subject of its own."""
_NEEDS = (Need(LOGBERG_VERSION, ERASURE_FROM),)


class SubjectKeysRecord(Record, frozen=True, tag=102000):
    """Names the tree of subjects' keys that counts from here on. A majority holds it. Ours."""

    TYPE_ID: ClassVar[int] = 1020
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("key")
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)

    keys_id: bytes
    """The tree's id, 8 bytes: the beginning of a hash of its root."""
    cluster_key_id: bytes
    """The id of the cluster key under which the controllers keep the tree."""


class PseudonymRecord(Record, frozen=True, tag=102200):
    """Gives a person a pseudonym, which stands for the name from here on. Ours.

    An erasure of the pseudonym ends it.
    """

    TYPE_ID: ClassVar[int] = 1022
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("user",)

    pseudonym: str
    """`p-` and the number of the person's key, in base32 (`metadata.pseudonyms`)."""
    name: bytes
    """The name, without `User:`, sealed under that key."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"user:{self.pseudonym}",)


class SubjectErasedRecord(Record, frozen=True, tag=102100):
    """Says that a subject's values are erased: every controller destroys these keys. Ours."""

    TYPE_ID: ClassVar[int] = 1021
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("erasure")
    COLUMNS: ClassVar[Columns] = {"name": "subject"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("user", "from")

    subject: str
    """Such as user:alice; a person who has a pseudonym is told by that. An address is not told:
    `from:sealed-` and its number in hex."""
    numbers: tuple[bytes, ...]
    """The numbers of the keys, 8 bytes each: the subject's, and the one of the requests' digests
    until now. Of an address also the one of addresses' numbers until now, and its own older
    ones."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (self.subject,)
