"""Everything that `from logberg import …` offers; `docs/reference-python.md` explains it.

Rule: these names stay where they are, whatever moves inside. `logberg/__init__.py` imports this
module when the first of them is asked for, so the command line doesn't pay for it.
"""

from broker_agent.config import AgentConfig, Endpoint, FeatureRange
from broker_agent.health import Health
from broker_agent.image_store import WrongFolderError
from broker_agent.library import AgentGoneError, BrokerAgent, Ending, run_until_gone
from broker_agent.publishers import Duties, Manifest, Publisher
from broker_agent.states import BrokerState
from logberg.client.access import Access, AccessError, read_token
from logberg.client.client import ClientError, LogbergClient
from logberg.local.cluster_access import ClusterAccess, find_local_cluster
from logberg.local.local_cluster import LocalClusterError
from metadata.image import (
    BrokerRegistration,
    ImageChanges,
    MetadataImage,
    Partition,
    Topic,
    difference,
)
from metadata.messages import (
    BatchInWords,
    BrokerDescription,
    CreatedTopic,
    CreateTopicsReply,
    DeletedTopic,
    DeleteTopicsReply,
    DescribeTopicsReply,
    ErrorReply,
    FeatureUpdate,
    ListBrokersReply,
    ListFeaturesReply,
    ListTopicsReply,
    LogReply,
    NewTopic,
    PartitionDescription,
    QuorumMember,
    QuorumReply,
    RecordInWords,
    StatusReply,
    TopicDescription,
    TopicSummary,
    UnregisterBrokerReply,
    UpdateFeaturesReply,
    UpgradeType,
)
from metadata.partition_key import PartitionKey
from metadata.uuids import parse_uuid, uuid_text
from runtime.disk.interface import FolderInUseError
from runtime.sockets.tls import TlsFiles, TlsFilesError, client_context

__all__ = [
    "Access",
    "AccessError",
    "AgentConfig",
    "AgentGoneError",
    "BatchInWords",
    "BrokerAgent",
    "BrokerDescription",
    "BrokerRegistration",
    "BrokerState",
    "ClientError",
    "ClusterAccess",
    "CreateTopicsReply",
    "CreatedTopic",
    "DeleteTopicsReply",
    "DeletedTopic",
    "DescribeTopicsReply",
    "Duties",
    "Ending",
    "Endpoint",
    "ErrorReply",
    "FeatureRange",
    "FeatureUpdate",
    "FolderInUseError",
    "Health",
    "ImageChanges",
    "ListBrokersReply",
    "ListFeaturesReply",
    "ListTopicsReply",
    "LocalClusterError",
    "LogReply",
    "LogbergClient",
    "Manifest",
    "MetadataImage",
    "NewTopic",
    "Partition",
    "PartitionDescription",
    "PartitionKey",
    "Publisher",
    "QuorumMember",
    "QuorumReply",
    "RecordInWords",
    "StatusReply",
    "TlsFiles",
    "TlsFilesError",
    "Topic",
    "TopicDescription",
    "TopicSummary",
    "UnregisterBrokerReply",
    "UpdateFeaturesReply",
    "UpgradeType",
    "WrongFolderError",
    "client_context",
    "difference",
    "find_local_cluster",
    "parse_uuid",
    "read_token",
    "run_until_gone",
    "uuid_text",
]
