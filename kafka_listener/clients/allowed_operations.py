"""The operations that a client may do, as one number with a bit for each (KIP-430).

Rule: everything, as Kafka answers without an authorizer. The controllers decide each request by
itself, so what this field says permits nothing.
"""

from typing import Final

from metadata.records import AclOperation

NOT_ASKED: Final = -(2**31)
"""What the field holds when the client did not ask for it."""


def _bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


_EVERYWHERE: Final = (
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
ON_CLUSTER: Final = _bits(*_EVERYWHERE, AclOperation.CLUSTER_ACTION, AclOperation.IDEMPOTENT_WRITE)
ON_TOPIC: Final = _bits(*_EVERYWHERE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE)


def if_asked(operations: int, *, asked: bool) -> int:
    """Return the field's value."""
    return operations if asked else NOT_ASKED
