"""Records about authentication and authorisation: ACLs, SCRAM credentials, delegation tokens."""

from enum import IntEnum
from typing import ClassVar

from metadata.address_ranges import is_range
from metadata.features import METADATA_VERSION
from metadata.records.declaring import (
    Columns,
    KnownNames,
    Need,
    Privileged,
    metadata_level,
    user_words,
)
from metadata.records.record import Codes, Record
from metadata.types import Int8, Int32, Int64, Uuid
from metadata.uuids import uuid_text


class AclResourceType(IntEnum):
    """Codes of `AccessControlEntryRecord.resource_type`, as in Kafka's ACL requests."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclPatternType(IntEnum):
    """Codes of `AccessControlEntryRecord.pattern_type` (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Codes of `AccessControlEntryRecord.operation`."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(IntEnum):
    """Codes of `AccessControlEntryRecord.permission_type`."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ScramMechanism(IntEnum):
    """Codes of a SCRAM record's `mechanism` (KIP-554)."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class AccessControlEntryRecord(Record, frozen=True, tag=1800):
    """Adds an access control entry (KIP-801). The record that removes it names its uuid."""

    TYPE_ID: ClassVar[int] = 18
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {
        "resource_type": AclResourceType,
        "pattern_type": AclPatternType,
        "operation": AclOperation,
        "permission_type": AclPermissionType,
    }
    NEEDS: ClassVar[tuple[Need, ...]] = (Need(METADATA_VERSION, 32, "host", uses=is_range),)
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("acl")
    COLUMNS: ClassVar[Columns] = {"resource_type": "resource_type", "name": "id"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("acl", "topic", "user")

    id: Uuid
    resource_type: Int8
    resource_name: str
    pattern_type: Int8
    principal: str
    host: str
    """An address, `*`, or, from metadata.version 32 on, a range such as 10.0.0.0/8."""
    operation: Int8
    permission_type: Int8

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"acl:{uuid_text(self.id)}", *self.wider_subjects())

    def wider_subjects(self) -> tuple[str, ...]:
        """Return the words for the entry's topic and user, if it names them."""
        literal = self.pattern_type == AclPatternType.LITERAL
        about_topic = self.resource_type == AclResourceType.TOPIC and literal
        topic = (f"topic:{self.resource_name}",) if about_topic else ()
        return (*topic, *user_words(self.principal))


class RemoveAccessControlEntryRecord(Record, frozen=True, tag=1900):
    """Removes an access control entry (KIP-801)."""

    TYPE_ID: ClassVar[int] = 19
    VERSION: ClassVar[int] = 0
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("acl")
    COLUMNS: ClassVar[Columns] = {"name": "id"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("acl", "topic", "user")

    id: Uuid

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        entry = names.acls.get(self.id)
        return (f"acl:{uuid_text(self.id)}", *(() if entry is None else entry.wider_subjects()))


class UserScramCredentialRecord(Record, frozen=True, tag=1100):
    """Sets a user's SCRAM credential (KIP-554, 900)."""

    TYPE_ID: ClassVar[int] = 11
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"mechanism": ScramMechanism}
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(11)
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("user")
    COLUMNS: ClassVar[Columns] = {"name": "name"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("user",)

    name: str
    mechanism: Int8
    """A `ScramMechanism`."""
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: Int32

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"user:{self.name}",)

    def secret_fields(self) -> tuple[str, ...]:
        return ("salt", "stored_key", "server_key")


class RemoveUserScramCredentialRecord(Record, frozen=True, tag=2200):
    """Removes a user's SCRAM credential (KIP-900)."""

    TYPE_ID: ClassVar[int] = 22
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"mechanism": ScramMechanism}
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("user")
    COLUMNS: ClassVar[Columns] = {"name": "name"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("user",)

    name: str
    mechanism: Int8
    """A `ScramMechanism`."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"user:{self.name}",)


class DelegationTokenRecord(Record, frozen=True, tag=1000):
    """Creates or renews a delegation token, or sets when it expires (KIP-48, 900); times in ms.

    It holds no secret: the token's HMAC is computed from its id and a key that is in no record
    (KIP-48).
    """

    TYPE_ID: ClassVar[int] = 10
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(14)
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("token")
    COLUMNS: ClassVar[Columns] = {"name": "token_id"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("token", "user")

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: str

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"token:{self.token_id}", *user_words(self.owner))


class RemoveDelegationTokenRecord(Record, frozen=True, tag=2600):
    """Removes a delegation token (KIP-900)."""

    TYPE_ID: ClassVar[int] = 26
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(14)
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("token")
    COLUMNS: ClassVar[Columns] = {"name": "token_id"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("token", "user")

    token_id: str

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        owner = names.token_owners.get(self.token_id, "")
        return (f"token:{self.token_id}", *user_words(owner))
