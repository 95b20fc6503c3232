"""Records that tie names to pseudonyms, and the keys that open them, for tests of agents."""

from metadata.people import as_sealed
from metadata.pseudonyms import name_place, pseudonym_of
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    ClusterKeyRecord,
    PseudonymRecord,
    Record,
    SubjectErasedRecord,
    SubjectKeysRecord,
)
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys
from runtime.http.requests import Caller

SECRET = bytes(32)
TREE = SubjectKeys.of_root(bytes(range(32)))
ALICES, CAROLS = b"12345678", b"abcdefgh"
ALICE, BOB = Caller("User:alice", "certificate", "10.0.0.7"), Caller("User:bob", "certificate")
ROOT = Caller("User:root", "certificate", "10.0.0.8")
P_ALICE = f"User:{pseudonym_of(ALICES)}"


def key_with(tree: SubjectKeys | None = TREE, secret: bytes = SECRET) -> ClusterKey:
    key = ClusterKey(secret)
    key.subjects.keys = tree
    return key


def keys_named() -> tuple[Record, ...]:
    """The log names the cluster key and the tree."""
    return ClusterKeyRecord(key_with().id), SubjectKeysRecord(TREE.id, key_with().id)


def tied(number: bytes = ALICES, name: str = "alice") -> PseudonymRecord:
    pseudonym = pseudonym_of(number)
    sealed = key_with().seal_for(number, name_place(pseudonym), as_sealed(name), bytes(16))
    return PseudonymRecord(pseudonym, sealed.block)


def erased(number: bytes = ALICES) -> SubjectErasedRecord:
    return SubjectErasedRecord(f"user:{pseudonym_of(number)}", (number,))


def describing(principal: str, topic: str, *, allow: bool, number: int) -> Record:
    """An entry about who may describe a topic."""
    return AccessControlEntryRecord(
        number.to_bytes(16, "big"),
        AclResourceType.TOPIC,
        topic,
        AclPatternType.LITERAL,
        principal,
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW if allow else AclPermissionType.DENY,
    )
