"""Roles: names for bundles of access control entries, which `logberg acls role` writes (ADR 0086).

Rule: the log knows no roles. A grant writes plain entries, so a role that changes here changes no
cluster that runs.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from metadata.acl_names import AUDIT, BRIDGE, COORDINATION, KAFKA_CLUSTER, PLACEMENT, QUORUM


class RoleEntry(NamedTuple):
    """What one entry of a role allows, in the words of requests."""

    operation: str
    resource_type: str
    name: str
    pattern_type: str = "LITERAL"


def _entries(kind: str, name: str, *operations: str) -> Iterator[RoleEntry]:
    return (RoleEntry(operation, kind, name) for operation in operations)


def _all_on(kind: str, *names: str) -> Iterable[RoleEntry]:
    return (RoleEntry("ALL", kind, name) for name in names)


_VIEWER: Final = (
    *_entries("CLUSTER", KAFKA_CLUSTER, "DESCRIBE", "DESCRIBE_CONFIGS"),
    *_entries("TOPIC", "*", "DESCRIBE", "DESCRIBE_CONFIGS"),
    *_entries("GROUP", "*", "DESCRIBE", "DESCRIBE_CONFIGS"),
)
_OPERATOR: Final = (
    *_VIEWER,
    *_entries("CLUSTER", KAFKA_CLUSTER, "ALTER_CONFIGS"),
    *_entries("CLUSTER", PLACEMENT, "ALTER"),
    *_entries("TOPIC", "*", "CREATE", "DELETE", "ALTER", "ALTER_CONFIGS"),
    *_entries("GROUP", "*", "ALTER_CONFIGS"),
)
_ADMIN: Final = (
    *_all_on("CLUSTER", KAFKA_CLUSTER, QUORUM, AUDIT, PLACEMENT, BRIDGE),
    RoleEntry("ALL", "CLUSTER", COORDINATION, "PREFIXED"),
    *(
        RoleEntry("ALL", kind, "*")
        for kind in ("TOPIC", "GROUP", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
    ),
)

ROLES: Final[Mapping[str, tuple[RoleEntry, ...]]] = MappingProxyType(
    {"viewer": _VIEWER, "operator": _OPERATOR, "admin": _ADMIN}
)
"""viewer: sees the state. operator: also changes topics, configs, quotas, and where replicas lie.
admin: does everything, also what concerns users, rights, the quorum, the log and coordination."""
