"""Every request and reply of the HTTP interface, as plain data.

Rule: no message knows what carries it; `metadata.messages.wire` turns it into bytes and back.
"""

from metadata.messages.brokers import (
    BrokerDescription,
    BrokerStateName,
    DescribeBrokerReply,
    EndpointDescription,
    FeatureDescription,
    ListBrokersReply,
    UnregisterBrokerReply,
)
from metadata.messages.clients import ClientBroker, ClientMetadata, ClientPartition, ClientTopic
from metadata.messages.errors import (
    ErrorReply,
    error_reply,
    with_leader,
)
from metadata.messages.features import (
    FeatureNode,
    FeatureState,
    FeatureUpdate,
    ListFeaturesReply,
    UpdatedFeature,
    UpdateFeaturesReply,
    UpdateFeaturesRequest,
    UpgradeType,
)
from metadata.messages.fetch import (
    Divergence,
    Endpoint,
    MetadataFetchReply,
    MetadataFetchRequest,
    Registration,
    SeenState,
    SnapshotToLoad,
    StateAt,
    SupportedFeature,
    WantedState,
)
from metadata.messages.log import (
    ReadLogReply,
    ReadRecordsReply,
)
from metadata.messages.message import (
    ReplyMessage,
    RequestMessage,
)
from metadata.messages.quorum import (
    HealthReply,
    QuorumMember,
    QuorumReply,
    StatusReply,
)
from metadata.messages.topics import (
    CreatedTopic,
    CreateTopicsReply,
    CreateTopicsRequest,
    DeletedTopic,
    DeleteTopicsReply,
    DeleteTopicsRequest,
    DescribeTopicsReply,
    ListTopicsReply,
    NewTopic,
    PartitionDescription,
    ReplicaAssignment,
    TopicDescription,
    TopicSummary,
)

__all__ = [
    "BrokerDescription",
    "BrokerStateName",
    "ClientBroker",
    "ClientMetadata",
    "ClientPartition",
    "ClientTopic",
    "CreateTopicsReply",
    "CreateTopicsRequest",
    "CreatedTopic",
    "DeleteTopicsReply",
    "DeleteTopicsRequest",
    "DeletedTopic",
    "DescribeBrokerReply",
    "DescribeTopicsReply",
    "Divergence",
    "Endpoint",
    "EndpointDescription",
    "ErrorReply",
    "FeatureDescription",
    "FeatureNode",
    "FeatureState",
    "FeatureUpdate",
    "HealthReply",
    "ListBrokersReply",
    "ListFeaturesReply",
    "ListTopicsReply",
    "MetadataFetchReply",
    "MetadataFetchRequest",
    "NewTopic",
    "PartitionDescription",
    "QuorumMember",
    "QuorumReply",
    "ReadLogReply",
    "ReadRecordsReply",
    "Registration",
    "ReplicaAssignment",
    "ReplyMessage",
    "RequestMessage",
    "SeenState",
    "SnapshotToLoad",
    "StateAt",
    "StatusReply",
    "SupportedFeature",
    "TopicDescription",
    "TopicSummary",
    "UnregisterBrokerReply",
    "UpdateFeaturesReply",
    "UpdateFeaturesRequest",
    "UpdatedFeature",
    "UpgradeType",
    "WantedState",
    "error_reply",
    "with_leader",
]
