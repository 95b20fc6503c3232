"""What an access control entry gives, in words and in traits.

Rule: an entry is `wide` if whoever holds it can do what nobody listed: all operations, a wildcard
for the name, everybody as the principal, or an operation that rules the cluster.
"""

from typing import Final, NamedTuple

from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
)

WIDE: Final = "wide"
DENY: Final = "deny"
_EVERYBODY: Final = "User:*"
_ANY_NAME: Final = "*"
_RULES_THE_CLUSTER: Final = frozenset(
    {
        AclOperation.ALL,
        AclOperation.ALTER,
        AclOperation.ALTER_CONFIGS,
        AclOperation.CLUSTER_ACTION,
        AclOperation.CREATE_TOKENS,
        AclOperation.DELETE,
    }
)
_HARMLESS: Final = frozenset({AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS})


class KnownEntry(NamedTuple):
    """What is remembered of an entry, so that its removal can be told."""

    grantee: str
    words: str
    """Such as `allow READ on TOPIC orders`."""
    traits: tuple[str, ...]


def known_entry(record: AccessControlEntryRecord) -> KnownEntry:
    """Describe an entry."""
    denies = record.permission_type == AclPermissionType.DENY
    verb = "deny" if denies else "allow"
    prefix = "prefix " if record.pattern_type == AclPatternType.PREFIXED else ""
    operation = _name(AclOperation, record.operation)
    kind = _name(AclResourceType, record.resource_type)
    words = f"{verb} {operation} on {kind} {prefix}{record.resource_name}"
    if denies:
        return KnownEntry(record.principal, words, (DENY,))
    return KnownEntry(record.principal, words, (WIDE,) if _is_wide(record) else ())


def _is_wide(record: AccessControlEntryRecord) -> bool:
    if record.operation == AclOperation.ALL:
        return True
    if record.resource_type == AclResourceType.CLUSTER:
        return record.operation in _RULES_THE_CLUSTER
    if record.operation in _HARMLESS:
        return False
    any_name = record.resource_name == _ANY_NAME or (
        record.pattern_type == AclPatternType.PREFIXED and not record.resource_name
    )
    return any_name or record.principal == _EVERYBODY


def _name(codes: type[AclOperation] | type[AclResourceType], code: int) -> str:
    try:
        return codes(code).name
    except ValueError:
        return str(code)
