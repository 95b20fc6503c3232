"""Which resources a record changes, for conditional changes (ADR 0034).

Rule: a resource is what a user reads and changes as one thing. A topic and each of its partitions
are different resources: the leader of a partition may change while the topic stays as it is. A
resource is named by what stays when it is deleted and made again, so a topic by its name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from metadata.image import MetadataImage
from metadata.records import (
    AccessControlEntryRecord,
    AccessTokenRecord,
    BridgeRecord,
    BrokerRegistrationChangeRecord,
    CertificateRevocationRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    EndSessionRecord,
    EntryRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    HeadKeyRecord,
    JoinTokenRecord,
    KeyRecord,
    LegacyBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    PseudonymRecord,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveAccessTokenRecord,
    RemoveCertificateRevocationRecord,
    RemoveDelegationTokenRecord,
    RemoveEntryRecord,
    RemoveJoinTokenRecord,
    RemoveKeyRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    SessionRecord,
    SubjectErasedRecord,
    TokenBaseRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    VotersRecord,
    entity_key,
)
from metadata.records.configs import config_kind
from metadata.records.coordination import resource_word
from metadata.uuids import uuid_text

Resource = tuple[Any, ...]
"""The kind of a resource, and what identifies it among its kind."""
Keys = Callable[[Any, MetadataImage], tuple[Resource, ...]]


def topic(name: str) -> Resource:
    """A topic: its existence and the number of its partitions."""
    return ("topic", name)


def partition(topic_id: bytes, number: int) -> Resource:
    """A partition: replicas, ISR, leader."""
    return ("partition", topic_id, number)


def broker(broker_id: int) -> Resource:
    """A broker: its registration and its state."""
    return ("broker", broker_id)


def feature(name: str) -> Resource:
    """A feature's level."""
    return ("feature", name)


def config(kind: int, name: str) -> Resource:
    """The configs of one resource, all together."""
    return ("config", kind, name)


def partitions(
    named: Iterable[tuple[str, Iterable[int]]], image: MetadataImage
) -> Iterator[Resource]:
    """Yield the partitions that a request names. Unknown topics are left out."""
    for name, numbers in named:
        found = image.topics.named(name)
        if found is not None:
            for number in numbers:
                yield partition(found.topic_id, number)


def resources_of(record: Record, image: MetadataImage) -> tuple[Resource, ...] | None:
    """Return what a record changes; None: that can't be said, so it may be anything.

    `image` is the state before the record, and perhaps before others of the same decision.
    """
    if type(record) is ClearElrRecord:
        return None
    keys = _KEYS.get(type(record))
    return () if keys is None else keys(record, image)


def rests_on(record: Record, image: MetadataImage) -> tuple[Resource, ...]:
    """Return what must be unchanged for a conditional change that writes this record."""
    if type(record) is PartitionChangeRecord:
        return (partition(record.topic_id, record.partition_id), ("made", record.topic_id))
    return resources_of(record, image) or ()


def in_words(resource: Resource, image: MetadataImage) -> str:
    """Return a resource as people write it: topic:orders, partition:orders-3, broker:7."""
    kind, *rest = resource
    if kind in ("partition", "made"):
        found = image.topics.by_id.get(rest[0])
        name = uuid_text(rest[0]) if found is None else found.name
        return f"partition:{name}-{rest[1]}" if kind == "partition" else f"topic:{name}"
    if kind == "config":
        return f"config:{config_kind(rest[0])}:{rest[1]}"
    if kind == "quota":
        return "quota:" + ",".join(f"{k}={n[0] if n else '<default>'}" for k, n in rest[0])
    return ":".join(str(part) for part in resource)


def _removed_topic(record: RemoveTopicRecord, image: MetadataImage) -> tuple[Resource, ...]:
    """The configs of a topic go with it."""
    found = image.topics.by_id.get(record.topic_id)
    made = ("made", record.topic_id)
    if found is None:
        return (made,)
    return (topic(found.name), made, config(ConfigResourceType.TOPIC, found.name))


def _partition(record: PartitionRecord, image: MetadataImage) -> tuple[Resource, ...]:
    """A partition that is made with its topic needs no entry of its own: the topic has one."""
    found = image.topics.by_id.get(record.topic_id)
    if found is None:
        return ()
    return (topic(found.name), partition(record.topic_id, record.partition_id))


def _acl(record: AccessControlEntryRecord, _image: MetadataImage) -> tuple[Resource, ...]:
    """The entries of one pattern are one resource: a new entry changes what the others mean."""
    return (("acl", record.resource_type, record.pattern_type, record.resource_name),)


def _removed_acl(
    record: RemoveAccessControlEntryRecord, image: MetadataImage
) -> tuple[Resource, ...]:
    found = image.acls.entries.get(record.id)
    return () if found is None else _acl(found, image)


_KEYS: Final[Mapping[type[Record], Keys]] = {
    TopicRecord: lambda r, _: (topic(r.name), ("made", r.topic_id)),
    RemoveTopicRecord: _removed_topic,
    PartitionRecord: _partition,
    PartitionChangeRecord: lambda r, _: (partition(r.topic_id, r.partition_id),),
    ConfigRecord: lambda r, _: (config(r.resource_type, r.resource_name),),
    RegisterBrokerRecord: lambda r, _: (broker(r.broker_id),),
    UnregisterBrokerRecord: lambda r, _: (broker(r.broker_id),),
    FenceBrokerRecord: lambda r, _: (broker(r.id),),
    UnfenceBrokerRecord: lambda r, _: (broker(r.id),),
    BrokerRegistrationChangeRecord: lambda r, _: (broker(r.broker_id),),
    RegisterControllerRecord: lambda r, _: (("controller", r.controller_id),),
    UnregisterControllerRecord: lambda r, _: (("controller", r.controller_id),),
    FeatureLevelRecord: lambda r, _: (feature(r.name),),
    ClientQuotaRecord: lambda r, _: (("quota", entity_key(r.entity)),),
    ProducerIdsRecord: lambda _r, _: (("producer-ids",),),
    AccessControlEntryRecord: _acl,
    RemoveAccessControlEntryRecord: _removed_acl,
    UserScramCredentialRecord: lambda r, _: (("user", r.name),),
    RemoveUserScramCredentialRecord: lambda r, _: (("user", r.name),),
    SubjectErasedRecord: lambda r, _: (("erasure", r.subject),),
    PseudonymRecord: lambda r, _: (("pseudonym", r.pseudonym),),
    DelegationTokenRecord: lambda r, _: (("token", r.token_id),),
    RemoveDelegationTokenRecord: lambda r, _: (("token", r.token_id),),
    AccessTokenRecord: lambda r, _: (("access-token", r.token_id),),
    RemoveAccessTokenRecord: lambda r, _: (("access-token", r.token_id),),
    JoinTokenRecord: lambda r, _: (("join-token", r.token_id),),
    RemoveJoinTokenRecord: lambda r, _: (("join-token", r.token_id),),
    CertificateRevocationRecord: lambda r, _: (("certificate", r.value),),
    RemoveCertificateRevocationRecord: lambda r, _: (("certificate", r.value),),
    SessionRecord: lambda r, _: (("session", uuid_text(r.session_id)),),
    EndSessionRecord: lambda r, _: (("session", uuid_text(r.session_id)),),
    EntryRecord: lambda r, _: (("entries", resource_word(r.kind, r.name)),),
    RemoveEntryRecord: lambda r, _: (("entries", resource_word(r.kind, r.name)),),
    KeyRecord: lambda r, _: (("key", r.key),),
    RemoveKeyRecord: lambda r, _: (("key", r.key),),
    TokenBaseRecord: lambda _r, _: (("token-base",),),
    BridgeRecord: lambda _r, _: (("bridge",),),
    VotersRecord: lambda _r, _: (("voters",),),
    HeadKeyRecord: lambda r, _: (("head-key", r.controller_id),),
    LegacyBrokerRecord: lambda r, _: (("legacy-broker", r.broker_id),),
}
