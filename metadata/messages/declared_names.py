"""The names of declared things in a plan, for who makes the plan and for who reads it."""

from collections.abc import Iterable

from metadata.messages.acls import AclDescription, AclEntry
from metadata.messages.quotas import QuotaEntity, QuotaEntityPart


def acl_name(acl: AclEntry | AclDescription) -> str:
    """Return the name of an access control entry: all that it says."""
    return (
        f"{acl.principal} {acl.permission_type} {acl.operation} "
        f"{acl.resource_type}:{acl.resource_name} {acl.pattern_type} from {acl.host}"
    )


def quotas_name(entity: Iterable[QuotaEntityPart | QuotaEntity]) -> str:
    """Return the name of a quota's entity: its parts, sorted by type."""
    parts = sorted((part.entity_type, part.entity_name) for part in entity)
    return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in parts)
