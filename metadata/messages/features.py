"""Feature levels. `GET /v1/features`, `POST /v1/features` (KIP-584, 778)."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.brokers import FeatureDescription
from metadata.messages.message import ReplyMessage, RequestMessage

_Level = Annotated[int, Meta(ge=0, le=2**15 - 1)]


class UpgradeType(StrEnum):
    """What a caller means to do; an update that would do another thing is refused."""

    UPGRADE = "upgrade"
    SAFE_DOWNGRADE = "safe_downgrade"
    """Lower it where nothing can be lost."""
    UNSAFE_DOWNGRADE = "unsafe_downgrade"
    """Known from Kafka, and always refused."""


class FeatureUpdate(RequestMessage, frozen=True):
    """One feature, and the level at which it is to be."""

    feature: Annotated[str, Meta(min_length=1, max_length=249)]
    max_version_level: _Level
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


class UpdateFeaturesRequest(RequestMessage, frozen=True):
    """All of it, or nothing."""

    updates: Annotated[tuple[FeatureUpdate, ...], Meta(min_length=1, max_length=64)]
    dry_run: bool = False


class UpdatedFeature(ReplyMessage, frozen=True):
    """The level of a feature before and after the update; 0: not finalised."""

    name: str
    level_before: int
    level: int


class UpdateFeaturesReply(ReplyMessage, frozen=True):
    """What was asked for, feature by feature."""

    features: tuple[UpdatedFeature, ...]
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class FeatureState(ReplyMessage, frozen=True):
    """One feature of the cluster."""

    name: str
    level: int
    """Finalised; 0: not."""
    level_name: str | None
    """Kafka's name of it, where it has one."""
    min_supported_version: int
    """Of the build that answers; -1: it doesn't know the feature."""
    max_supported_version: int


class FeatureNode(ReplyMessage, frozen=True):
    """What one controller or broker supports."""

    kind: str
    """controller or broker."""
    node_id: int
    registered: bool
    """False: a voter that has not registered itself; it runs release 0.1, or never ran."""
    declared: bool
    """False: it declares nothing, and counts as supporting the lowest levels only."""
    features: tuple[FeatureDescription, ...]


class ListFeaturesReply(ReplyMessage, frozen=True):
    """The levels of the cluster, and what each node supports, from one image."""

    offset: int
    epoch: int
    features: tuple[FeatureState, ...]
    nodes: tuple[FeatureNode, ...]
    note: str = ""
    """Why the log has no levels yet; else empty."""
    age_ms: int | None = 0
