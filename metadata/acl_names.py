"""The names that an access control entry of type CLUSTER may have (ADR 0086).

Kafka has one, `kafka-cluster`. The others are Logberg's own nouns. Kafka's brokers replay entries
with them, and never ask for them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

KAFKA_CLUSTER: Final = "kafka-cluster"
QUORUM: Final = "quorum"
AUDIT: Final = "audit"
PLACEMENT: Final = "placement"
BRIDGE: Final = "bridge"
COORDINATION: Final = "coordination:"
"""What begins so: `coordination:session`, or a kind and a name, such as `coordination:key:/app`."""
SESSIONS: Final = COORDINATION + "session"

CLUSTER_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        KAFKA_CLUSTER: "the cluster as a whole, as in Kafka",
        QUORUM: "the controllers, who votes and who leads",
        AUDIT: "the log itself: batches, segments, snapshots, records as they are written",
        PLACEMENT: "where replicas lie and who leads partitions; brokers that are unregistered",
        BRIDGE: "the bridge from another store",
        COORDINATION: "sessions, keys, groups, elections and locks, by a name behind the colon",
    }
)
"""By name: what it is. A name that ends with a colon is only the beginning of names."""


def coordination_name(kind: str, name: str) -> str:
    """Return the name of a key, a group, an election or a lock."""
    return f"{COORDINATION}{kind}:{name}"


def is_cluster_name(name: str) -> bool:
    """Return whether an entry of type CLUSTER may have this name."""
    return name in CLUSTER_NAMES or name.startswith(COORDINATION)
