"""Decides what a principal may do, from the access control entries (Kafka's StandardAuthorizer).

Rules, the first that applies decides:

1. A super user may do everything.
2. An entry that denies. An entry for the name, for a prefix of it or for `*` counts the same.
3. An entry that allows. READ, WRITE, DELETE and ALTER allow DESCRIBE as well, and ALTER_CONFIGS
   allows DESCRIBE_CONFIGS. This holds for entries that allow, and for none that denies.
4. There are entries for the resource, and none matches: denied.
5. There is no entry for the resource: `allow_if_no_acl` decides.

A range is all names that begin in one way. As in etcd, an entry that allows counts for a range only
if it reaches all of it: an entry for a prefix, or for `*`. An entry for the one name doesn't. One
that denies the one name does count, because that name is in the range.

An entry's host is an address, a range of addresses in CIDR notation (`10.0.0.0/8`), or `*`.

The cost grows with the length of the name and the number of patterns that match it, and not with
the number of entries: each step looks up an entry by its whole content.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from metadata.image.acls import AclResource, AclsImage
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
)

WILDCARD: Final = "*"
"""As a literal name: every resource of the type. As a host: every host."""
EVERY_USER: Final = "User:*"

_DESCRIBING = (
    AclOperation.DESCRIBE,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DELETE,
    AclOperation.ALTER,
)
_ALLOWING: Final[Mapping[AclOperation, tuple[AclOperation, ...]]] = {
    AclOperation.DESCRIBE: _DESCRIBING,
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS),
}
"""By operation: the operations whose permission implies it. Any other operation is implied only by
itself."""


class Enforcement(StrEnum):
    """What the setting `authorization` of a node may be."""

    OFF = "off"
    LOG_ONLY = "log-only"
    ON = "on"


class Action(NamedTuple):
    """An operation of a principal on a resource."""

    principal: str
    """Such as User:alice."""
    host: str
    """The address that the principal calls from."""
    operation: AclOperation
    resource_type: AclResourceType
    resource_name: str


class AclPolicy(NamedTuple):
    """A node's settings for authorisation."""

    super_users: frozenset[str] = frozenset()
    """Principals that may do everything."""
    allow_if_no_acl: bool = False
    """Kafka's allow.everyone.if.no.acl.found."""


class Verdict(NamedTuple):
    """Whether an action is allowed, and why."""

    allowed: bool
    reason: str
    """super user, deny, allow, no entry matches, or no entry for the resource."""
    entry: AccessControlEntryRecord | None = None
    """The entry that decided."""


def authorize(
    acls: AclsImage, action: Action, policy: AclPolicy, *, and_below: bool = False
) -> Verdict:
    """Return whether the action is allowed.

    `and_below`: on the whole range of names that begin as the resource's does. The caller looks for
    entries about single names in the range.
    """
    if action.principal in policy.super_users:
        return Verdict(allowed=True, reason="super user")
    patterns = [
        pattern
        for pattern in _patterns(action.resource_type, action.resource_name)
        if pattern in acls.resources
    ]
    if not patterns:
        return Verdict(allowed=policy.allow_if_no_acl, reason="no entry for the resource")
    hosts = tuple(dict.fromkeys((action.host, *acls.hosts_around(action.host), WILDCARD)))
    where = _Where(patterns, dict.fromkeys((action.principal, EVERY_USER)), hosts)
    denied = _first(acls, where, AclPermissionType.DENY, (action.operation,))
    if denied is not None:
        return Verdict(allowed=False, reason="deny", entry=denied)
    if and_below:
        where = where._replace(patterns=[each for each in patterns if _reaches_below(each)])
        if not where.patterns:
            return Verdict(allowed=policy.allow_if_no_acl, reason="no entry for the resource")
    operations = _ALLOWING.get(action.operation, (action.operation,))
    allowed = _first(acls, where, AclPermissionType.ALLOW, operations)
    if allowed is not None:
        return Verdict(allowed=True, reason="allow", entry=allowed)
    return Verdict(allowed=False, reason="no entry matches")


class _Where(NamedTuple):
    """What an entry that matches says, but for its operation; the narrowest first."""

    patterns: Collection[AclResource]
    principals: Collection[str]
    hosts: Collection[str]


def _patterns(resource_type: AclResourceType, name: str) -> Iterator[AclResource]:
    """Yield the patterns that match a name, the narrowest first."""
    yield resource_type, AclPatternType.LITERAL, name
    for length in range(len(name), 0, -1):
        yield resource_type, AclPatternType.PREFIXED, name[:length]
    if name != WILDCARD:
        yield resource_type, AclPatternType.LITERAL, WILDCARD


def _reaches_below(pattern: AclResource) -> bool:
    """Return whether a pattern that matches a name matches all names that begin so, too."""
    return pattern[1] == AclPatternType.PREFIXED or pattern[2] == WILDCARD


def _first(
    acls: AclsImage,
    where: _Where,
    permission: AclPermissionType,
    operations: tuple[AclOperation, ...],
) -> AccessControlEntryRecord | None:
    """Return the narrowest entry that matches an action."""
    for pattern in where.patterns:
        for principal in where.principals:
            for host in where.hosts:
                for operation in (*operations, AclOperation.ALL):
                    entry = acls.first_with((*pattern, principal, host, operation, permission))
                    if entry is not None:
                        return entry
    return None
