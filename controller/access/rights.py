"""A right: an operation on a resource, in Kafka's words.

`AnyOf` is a need that any one of its rights meets. A request is allowed if all its needs are met.
"""

from typing import Final, NamedTuple

from metadata.acl_names import AUDIT, BRIDGE, KAFKA_CLUSTER, PLACEMENT, QUORUM, SESSIONS
from metadata.records import AclOperation, AclResourceType


class Right(NamedTuple):
    """What an access control entry allows or denies."""

    operation: AclOperation
    resource_type: AclResourceType
    name: str
    and_below: bool = False
    """All names that begin so are meant, as in a list. Only an entry that reaches them all allows
    that, and an entry that denies one of them counts."""
    asked_by_id: str = ""
    """The topic's id, if the request names it by that; empty: by its name. A refusal shows the name
    to nobody who may not describe the topic."""

    @property
    def in_words(self) -> str:
        """Such as `CREATE on TOPIC orders`."""
        range_words = " and every name that begins so" if self.and_below else ""
        return f"{self.operation.name} on {self.resource_type.name} {self.name[:249]}{range_words}"

    @property
    def by_its_id(self) -> "Right":
        """The same for words that don't have the topic's name."""
        if not self.asked_by_id:
            return self
        return self._replace(name=self.asked_by_id)


AnyOf = tuple[Right, ...]
"""Any of these is enough. The first one is the narrowest, and a refusal is about it."""


def on_cluster(operation: AclOperation, name: str = KAFKA_CLUSTER) -> Right:
    """Return a right on the cluster, or on one of Logberg's own nouns."""
    return Right(operation, AclResourceType.CLUSTER, name)


def on_topic(operation: AclOperation, name: str) -> Right:
    """Return a right on a topic."""
    return Right(operation, AclResourceType.TOPIC, name)


DESCRIBE_CLUSTER: Final = on_cluster(AclOperation.DESCRIBE)
DESCRIBE_CONFIGS: Final = on_cluster(AclOperation.DESCRIBE_CONFIGS)
ALTER_CLUSTER: Final = on_cluster(AclOperation.ALTER)
ALTER_CONFIGS: Final = on_cluster(AclOperation.ALTER_CONFIGS)
CREATE_ANY: Final = on_cluster(AclOperation.CREATE)
DELETE_ANY: Final = on_cluster(AclOperation.DELETE)
CLUSTER_ACTION: Final = on_cluster(AclOperation.CLUSTER_ACTION)
READ_AUDIT: Final = on_cluster(AclOperation.READ, AUDIT)
ALTER_PLACEMENT: Final = on_cluster(AclOperation.ALTER, PLACEMENT)
ALTER_QUORUM: Final = on_cluster(AclOperation.ALTER, QUORUM)
DESCRIBE_QUORUM: Final = on_cluster(AclOperation.DESCRIBE, QUORUM)
ALTER_BRIDGE: Final = on_cluster(AclOperation.ALTER, BRIDGE)
DESCRIBE_BRIDGE: Final = on_cluster(AclOperation.DESCRIBE, BRIDGE)
WRITE_SESSIONS: Final = on_cluster(AclOperation.WRITE, SESSIONS)
DESCRIBE_SESSIONS: Final = on_cluster(AclOperation.DESCRIBE, SESSIONS)
