"""The gate of the bridge: while the source leads, only the bridge changes what is followed.

Rule: a batch that changes what is followed must hold a `BridgeRecord`, which says up to which
revision. Only the route of the bridge writes such records. What the controllers do by themselves,
such as fencing a broker, is not asked here: no broker of this cluster holds what is followed.
"""

from collections.abc import Sequence
from typing import Final

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.records import (
    AccessControlEntryRecord,
    BridgeMode,
    BridgeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)

_FOLLOWED: Final = {
    TopicRecord: "topics",
    RemoveTopicRecord: "topics",
    PartitionRecord: "partitions",
    PartitionChangeRecord: "partitions",
    ConfigRecord: "configs",
    ClientQuotaRecord: "quotas",
    AccessControlEntryRecord: "ACLs",
    RemoveAccessControlEntryRecord: "ACLs",
    UserScramCredentialRecord: "SCRAM users",
    RemoveUserScramCredentialRecord: "SCRAM users",
    DelegationTokenRecord: "delegation tokens",
    RemoveDelegationTokenRecord: "delegation tokens",
    ProducerIdsRecord: "producer ids",
    FeatureLevelRecord: "features",
    RegisterBrokerRecord: "brokers",
}
_OF_SOURCE: Final = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)
"""Configs of other resources, such as groups, are in no source."""


def check_bridge(image: MetadataImage, records: Sequence[Record]) -> None:
    """Raise LogbergError SOURCE_LEADS for records that only the bridge may write now."""
    if not records:
        return
    state = image.bridge.state
    if state is None or state.mode not in (BridgeMode.FOLLOWING, BridgeMode.LEADING):
        return
    if state.mode == BridgeMode.LEADING:
        _check_moved(image, records)
    elif not any(isinstance(record, BridgeRecord) for record in records):
        _check_not_followed(state, records)


def _check_not_followed(state: BridgeRecord, records: Sequence[Record]) -> None:
    for record in records:
        what = _FOLLOWED.get(type(record))
        if what is None:
            continue
        if isinstance(record, ConfigRecord) and record.resource_type not in _OF_SOURCE:
            continue
        raise LogbergError(
            ErrorCode.SOURCE_LEADS,
            f"the bridge follows {state.source}, which leads: {what} are changed there, and come "
            "here from there. To let this cluster lead: logberg import zookeeper … --take-over",
            {"source": state.source},
        )


def _check_moved(image: MetadataImage, records: Sequence[Record]) -> None:
    """A broker registers here only after it has left the source."""
    for record in records:
        if isinstance(record, RegisterBrokerRecord):
            legacy = image.bridge.legacy_brokers.get(record.broker_id)
            if legacy is not None:
                raise LogbergError(
                    ErrorCode.SOURCE_LEADS,
                    f"broker {record.broker_id} is registered with the source of the bridge: stop "
                    "it there first, then start it here",
                    {"brokerId": str(record.broker_id)},
                )
