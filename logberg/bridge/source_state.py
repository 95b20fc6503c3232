"""What Kafka's nodes say, divided into topics, other families, and the brokers that are registered.

Rule: a step brings only what differs from the step before it: single topics, and whole families.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from logberg.importing.kafka_layout import read_kafka
from logberg.importing.source_error import SourceError
from logberg.importing.znodes import Znode, ZnodeTree
from metadata.messages.bridge import BridgeFamily, LegacyBroker
from metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    ProducerIdsRecord,
    Record,
    TopicRecord,
    UserScramCredentialRecord,
)

_FAMILY: Final[Mapping[type[Record], BridgeFamily]] = {
    ConfigRecord: "brokerConfigs",
    ClientQuotaRecord: "quotas",
    UserScramCredentialRecord: "users",
    AccessControlEntryRecord: "acls",
    DelegationTokenRecord: "tokens",
    ProducerIdsRecord: "producerIds",
}
FAMILIES: Final[tuple[BridgeFamily, ...]] = ("topics", *_FAMILY.values())
_MALFORMED_SHOWN: Final = 5


class SourceState(NamedTuple):
    """What a tree says at one zxid."""

    zxid: int
    cluster_id: str
    topics: Mapping[str, tuple[Record, ...]]
    """By name: the topic, its configs and its partitions."""
    families: Mapping[BridgeFamily, tuple[Record, ...]]
    """All but the topics."""
    brokers: tuple[LegacyBroker, ...]

    def records(self) -> list[Record]:
        """Return everything."""
        found = [record for records in self.topics.values() for record in records]
        return found + [record for records in self.families.values() for record in records]


class SourceStep(NamedTuple):
    """What a step brings."""

    records: tuple[Record, ...]
    complete: tuple[BridgeFamily, ...]
    topics_gone: tuple[str, ...]
    brokers: tuple[LegacyBroker, ...] | None

    def __bool__(self) -> bool:
        return bool(self.records or self.complete or self.topics_gone) or self.brokers is not None


def source_state(tree: ZnodeTree, zxid: int) -> SourceState:
    """Return what a tree says. Raises SourceError for nodes that can't be read."""
    plan = read_kafka(tree)
    brokers = tuple(_broker(node) for node in tree.children("/brokers/ids"))
    if plan.malformed:
        shown = "; ".join(f"{each.path}: {each.why}" for each in plan.malformed[:_MALFORMED_SHOWN])
        raise SourceError(f"{len(plan.malformed)} nodes can't be read: {shown}")
    topics: dict[str, tuple[Record, ...]] = {}
    families: dict[BridgeFamily, tuple[Record, ...]] = {
        family: () for family in FAMILIES if family != "topics"
    }
    name = None
    for record in plan.records:
        if isinstance(record, TopicRecord):
            name = record.name
        family = _FAMILY.get(type(record))
        if isinstance(record, ConfigRecord) and record.resource_type == ConfigResourceType.TOPIC:
            family = None
        if family is not None:
            families[family] += (record,)
        else:
            assert name is not None, "a plan begins with a topic, or has none"
            topics[name] = (*topics.get(name, ()), record)
    return SourceState(zxid, plan.cluster_id or "", topics, families, brokers)


def step_between(before: SourceState | None, after: SourceState) -> SourceStep:
    """Return what a step brings; `before` None: everything."""
    if before is None:
        return SourceStep(tuple(after.records()), FAMILIES, (), after.brokers)
    records = [
        record
        for name, of_topic in after.topics.items()
        if before.topics.get(name) != of_topic
        for record in of_topic
    ]
    changed = tuple(
        family for family, found in after.families.items() if before.families[family] != found
    )
    records += [record for family in changed for record in after.families[family]]
    gone = tuple(name for name in before.topics if name not in after.topics)
    brokers = None if before.brokers == after.brokers else after.brokers
    return SourceStep(tuple(records), changed, gone, brokers)


class _BrokerNode(msgspec.Struct):
    endpoints: tuple[str, ...] = ()
    host: str | None = None
    port: int = -1
    rack: str | None = None


def _broker(node: Znode) -> LegacyBroker:
    """Return a registered broker. Nodes before version 2 have a host and a port only."""
    try:
        found = msgspec.json.decode(node.data, type=_BrokerNode)
        number = int(node.name)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise SourceError(f"{node.path}: {error}") from None
    endpoints = found.endpoints or (f"PLAINTEXT://{found.host}:{found.port}",)
    return LegacyBroker(number, node.czxid, endpoints, found.rack)
