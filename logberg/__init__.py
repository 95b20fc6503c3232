"""A metadata quorum in the style of KIP-500: the names that programs import.

    from logberg import AgentConfig, BrokerAgent, LogbergClient

Rule: programs import from here, and from `logberg.spark`; all other modules may move. The names
are loaded together when the first of them is asked for, so `import logberg` costs nothing.
`docs/reference-python.md` explains them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logberg.public import (
        Access,
        AccessError,
        AgentConfig,
        AgentGoneError,
        BatchInWords,
        BrokerAgent,
        BrokerDescription,
        BrokerRegistration,
        BrokerState,
        ClientError,
        ClusterAccess,
        CreatedTopic,
        CreateTopicsReply,
        DeletedTopic,
        DeleteTopicsReply,
        DescribeTopicsReply,
        Duties,
        Ending,
        Endpoint,
        ErrorReply,
        FeatureRange,
        FeatureUpdate,
        FolderInUseError,
        Health,
        ImageChanges,
        ListBrokersReply,
        ListFeaturesReply,
        ListTopicsReply,
        LocalClusterError,
        LogbergClient,
        LogReply,
        Manifest,
        MetadataImage,
        NewTopic,
        Partition,
        PartitionDescription,
        PartitionKey,
        Publisher,
        QuorumMember,
        QuorumReply,
        RecordInWords,
        StatusReply,
        TlsFiles,
        TlsFilesError,
        Topic,
        TopicDescription,
        TopicSummary,
        UnregisterBrokerReply,
        UpdateFeaturesReply,
        UpgradeType,
        WrongFolderError,
        client_context,
        difference,
        find_local_cluster,
        parse_uuid,
        read_token,
        run_until_gone,
        uuid_text,
    )

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

# A type checker would take any name for a public one if it saw this function.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from logberg import public  # noqa: PLC0415 - only when a name is asked for

        globals().update({each: getattr(public, each) for each in __all__})
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
