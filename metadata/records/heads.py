"""Records of signed heads: the controllers' keys, and what a majority signed. Ours (ADR 0087).

Rule: a record says all that a reader needs to check it. A signed head holds the public keys that
signed it, so it can be checked after a key has changed. Only the leader writes them, and it has
checked the signatures; replay takes them at their word.
"""

from enum import IntEnum
from typing import ClassVar

from metadata.features import LOGBERG_VERSION, SIGNED_HEADS_FROM
from metadata.records.declaring import Columns, KnownNames, Need, Privileged
from metadata.records.record import Codes, Part, Record
from metadata.types import BrokerId, Digest, Int8, Int64, Uuid

_NEEDS = (Need(LOGBERG_VERSION, SIGNED_HEADS_FROM),)


class HeadKeyCause(IntEnum):
    """Codes of `HeadKeyRecord.cause`."""

    REGISTERED = 0
    """The voter had no key in the log, and has signed a head with this one."""
    ROTATING = 1
    """Somebody asked the controller to draw another key. This one still counts."""
    ROTATED = 2
    """The key before signed that this one replaces it, and this one did, too."""
    REPLACED = 3
    """An operator named this key: the one before is lost."""
    REMOVED = 4
    """The voter is gone, and its key with it."""


class HeadKeyRecord(Record, frozen=True, tag=101600):
    """Names the key with which a voter signs heads, or says that it counts no more. Ours."""

    TYPE_ID: ClassVar[int] = 1016
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"cause": HeadKeyCause}
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("key")
    COLUMNS: ClassVar[Columns] = {"name": lambda record: str(record.controller_id)}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("controller",)

    controller_id: BrokerId
    directory_id: Uuid
    """Of the folder that votes. A wiped controller has another one, and needs another key."""
    cause: Int8
    """A `HeadKeyCause`."""
    public_key: bytes
    """Ed25519, 32 bytes."""
    old_signature: bytes
    """Of a rotation: by the key before; else empty. What is signed: docs/format.md, section 14."""
    new_signature: bytes
    """Of a rotation: by this key; else empty."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"controller:{self.controller_id}",)


class HeadSignature(Part, frozen=True):
    """One controller's signature under a head."""

    controller_id: BrokerId
    public_key: bytes
    signature: bytes


class SignedHeadRecord(Record, frozen=True, tag=103000):
    """Says that a majority of the voters signed size and root of the tree over batches. Ours."""

    TYPE_ID: ClassVar[int] = 1030
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)

    origin: str
    """The name under which they signed: of the cluster, and of its generation."""
    size: Int64
    """How many batches the tree has."""
    root: Digest
    signatures: tuple[HeadSignature, ...]
