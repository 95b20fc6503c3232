"""The operations that a client may do, as one number with a bit for each (KIP-430).

Rule, as in Kafka: what the entries allow. Without enforcement, and for a super user, everything.
"""

from typing import Final

from controller.access.asker_rights import AskerRights
from metadata.acl_names import KAFKA_CLUSTER
from metadata.records import AclOperation, AclResourceType

NOT_ASKED: Final = -(2**31)
"""What the field holds when the client did not ask for it."""
_EVERYWHERE: Final = (
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
_ON_CLUSTER: Final = (*_EVERYWHERE, AclOperation.CLUSTER_ACTION, AclOperation.IDEMPOTENT_WRITE)
_ON_TOPIC: Final = (*_EVERYWHERE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE)


def _bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


ON_CLUSTER: Final = _bits(*_ON_CLUSTER)
ON_TOPIC: Final = _bits(*_ON_TOPIC)


def on_topic(rights: AskerRights | None, name: str) -> int:
    """Return what a client may do with a topic."""
    if rights is None:
        return ON_TOPIC
    kind = AclResourceType.TOPIC
    return _bits(*(each for each in _ON_TOPIC if rights.may(each, kind, name)))


def on_cluster(rights: AskerRights | None) -> int:
    """Return what a client may do with the cluster: nothing, if it may not describe it."""
    if rights is None:
        return ON_CLUSTER
    if not rights.may_on_cluster(AclOperation.DESCRIBE):
        return 0
    kind = AclResourceType.CLUSTER
    return _bits(*(each for each in _ON_CLUSTER if rights.may(each, kind, KAFKA_CLUSTER)))
