"""Records about who may do what: ACLs, SCRAM credentials, delegation tokens."""

from enum import IntEnum
from typing import ClassVar

from metadata.records.record import Record
from metadata.types import Int8, Int32, Int64, Uuid


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
    """An ACL is added; its uuid names it when it is removed (KIP-801)."""

    TYPE_ID: ClassVar[int] = 18
    VERSION: ClassVar[int] = 0

    id: Uuid
    resource_type: Int8
    resource_name: str
    pattern_type: Int8
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


class RemoveAccessControlEntryRecord(Record, frozen=True, tag=1900):
    """An ACL is removed (KIP-801)."""

    TYPE_ID: ClassVar[int] = 19
    VERSION: ClassVar[int] = 0

    id: Uuid


class UserScramCredentialRecord(Record, frozen=True, tag=1100):
    """A user's SCRAM credential is set (KIP-554, 900)."""

    TYPE_ID: ClassVar[int] = 11
    VERSION: ClassVar[int] = 0

    name: str
    mechanism: Int8
    """A `ScramMechanism`."""
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: Int32


class RemoveUserScramCredentialRecord(Record, frozen=True, tag=2200):
    """A user's SCRAM credential is removed (KIP-900)."""

    TYPE_ID: ClassVar[int] = 22
    VERSION: ClassVar[int] = 0

    name: str
    mechanism: Int8
    """A `ScramMechanism`."""


class DelegationTokenRecord(Record, frozen=True, tag=1000):
    """A delegation token is created, renewed or set to expire (KIP-48, 900); times in ms."""

    TYPE_ID: ClassVar[int] = 10
    VERSION: ClassVar[int] = 0

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: str


class RemoveDelegationTokenRecord(Record, frozen=True, tag=2600):
    """A delegation token is removed (KIP-900)."""

    TYPE_ID: ClassVar[int] = 26
    VERSION: ClassVar[int] = 0

    token_id: str
