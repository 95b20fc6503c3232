"""Requests and replies about feature levels: `GET` and `POST /v1/features` (KIP-584, 778)."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.brokers import FeatureDescription
from metadata.messages.message import ReplyMessage, RequestMessage

_Level = Annotated[int, Meta(ge=0, le=2**15 - 1)]


class UpgradeType(StrEnum):
    """The change that the caller intends. The controller refuses an update that does another."""

    UPGRADE = "upgrade"
    SAFE_DOWNGRADE = "safe_downgrade"
    """Lower the level if no metadata is lost."""
    UNSAFE_DOWNGRADE = "unsafe_downgrade"
    """A value of Kafka's; the controller always refuses it."""


class FeatureUpdate(RequestMessage, frozen=True):
    """One feature and its new level."""

    feature: Annotated[str, Meta(min_length=1, max_length=249)]
    max_version_level: _Level
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


class UpdateFeaturesRequest(RequestMessage, frozen=True):
    """Updates of feature levels: all of them are made, or none."""

    updates: Annotated[tuple[FeatureUpdate, ...], Meta(min_length=1, max_length=64)]
    dry_run: bool = False


class UpdatedFeature(ReplyMessage, frozen=True):
    """The level of a feature before and after the update; 0: not finalised."""

    name: str
    level_before: int
    level: int


class UpdateFeaturesReply(ReplyMessage, frozen=True):
    """The features of the request, each with its level before and after."""

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
    """The finalised level; 0: the feature is not finalised."""
    level_name: str | None
    """Kafka's name for the level, if it has one."""
    min_supported_version: int
    """Of the build that answers, as the next field; -1: it doesn't know the feature."""
    max_supported_version: int


class FeatureNode(ReplyMessage, frozen=True):
    """The levels that one controller or broker supports."""

    kind: str
    """controller or broker."""
    node_id: int
    registered: bool
    """False: a voter that has not registered: it runs release 0.1, or has never run."""
    declared: bool
    """False: the node declares no levels, so that it counts as supporting only the lowest."""
    features: tuple[FeatureDescription, ...]


class ListFeaturesReply(ReplyMessage, frozen=True):
    """The levels of the cluster, and what each node supports, from one image."""

    offset: int
    epoch: int
    features: tuple[FeatureState, ...]
    nodes: tuple[FeatureNode, ...]
    note: str = ""
    """Why the log has no levels yet; empty: it has."""
    age_ms: int | None = 0
