"""Everything that `from logberg import …` offers; `docs/reference-python.md` explains it.

Rule: these names stay where they are, whatever moves inside. `logberg/__init__.py` imports this
module when the first of them is asked for, so the command line doesn't pay for it.
"""

from broker_agent.config import AgentConfig, Endpoint, FeatureRange
from broker_agent.health import Health
from broker_agent.image_store import WrongFolderError
from broker_agent.isr_requests import IsrRequests, LedPartition
from broker_agent.library import AgentGoneError, BrokerAgent, Ending, run_until_gone
from broker_agent.publishers import Duties, Manifest, Publisher
from broker_agent.states import BrokerState
from controller.policies import PolicyViolationError, ProposedConfigs, ProposedTopic
from logberg.client.access import Access, AccessError, read_token
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
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
    AlterConfigsReply,
    AlteredConfigs,
    BatchInWords,
    BrokerDescription,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResourceChange,
    ConfigSynonym,
    ConfiguredResource,
    CreatedTopic,
    CreateTopicsReply,
    DeletedTopic,
    DeleteTopicsReply,
    DescribeConfigsReply,
    DescribeTopicsReply,
    ErrorReply,
    FeatureUpdate,
    ListBrokersReply,
    ListConfigsReply,
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
    "AlterConfigsReply",
    "AlteredConfigs",
    "BatchInWords",
    "BrokerAgent",
    "BrokerDescription",
    "BrokerRegistration",
    "BrokerState",
    "ClientError",
    "ClusterAccess",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResourceChange",
    "ConfigSynonym",
    "ConfiguredResource",
    "CreateTopicsReply",
    "CreatedTopic",
    "DeleteTopicsReply",
    "DeletedTopic",
    "DescribeConfigsReply",
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
    "IsrRequests",
    "LedPartition",
    "ListBrokersReply",
    "ListConfigsReply",
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
    "PolicyViolationError",
    "ProposedConfigs",
    "ProposedTopic",
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
