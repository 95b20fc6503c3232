"""Describes feature levels: the cluster's, and those that each node supports."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from controller.managers.features import has_levels, what_begins_later
from metadata.features import (
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SUPPORTED,
    known_levels,
    levels_of,
)
from metadata.image import MetadataImage
from metadata.messages import FeatureDescription, FeatureNode, FeatureState


def describe_features(image: MetadataImage) -> tuple[FeatureState, ...]:
    """Describe every feature that is finalised, or that this build knows, by name."""
    finalised = dict(image.features.levels.items())
    return tuple(_state(name, finalised.get(name, 0)) for name in sorted({*finalised, *SUPPORTED}))


def nodes_of(image: MetadataImage, voters: Iterable[int]) -> list[tuple[str, int]]:
    """Return (kind, id) of the controllers, registered or voters, then of the brokers, by id."""
    controllers = sorted({*image.cluster.controllers, *voters})
    return [
        *(("controller", node_id) for node_id in controllers),
        *(("broker", node_id) for node_id in image.cluster.ids),
    ]


def describe_node(image: MetadataImage, kind: str, node_id: int) -> FeatureNode:
    """Describe a registered node, or a voter that has not registered."""
    cluster = image.cluster
    node: Any = (cluster.controllers if kind == "controller" else cluster.brokers).get(node_id)
    features = () if node is None else node.features
    return FeatureNode(
        kind,
        node_id,
        registered=node is not None,
        declared=bool(features),
        features=() if node is None else tuple(_supported(features)),
    )


def why_no_levels(image: MetadataImage, voters: Iterable[int]) -> str:
    """Return what the levels of an old log wait for; empty if the log has levels."""
    if has_levels(image):
        return ""
    return what_begins_later(image, voters) or "they begin when all voters run at the same time"


def _state(name: str, level: int) -> FeatureState:
    supported = known_levels(name) or (-1, -1)
    level_name = METADATA_VERSION_NAMES.get(level) if name == METADATA_VERSION else None
    return FeatureState(name, level, level_name, *supported)


def _supported(features: Sequence[Any]) -> Iterator[FeatureDescription]:
    """Yield what a node supports: what it declares, and the defaults for the rest."""
    declared = [(f.name, f.min_supported_version, f.max_supported_version) for f in features]
    for name in sorted({name for name, _, _ in declared} | set(SUPPORTED)):
        low, high = levels_of(declared, name)
        yield FeatureDescription(name=name, min_supported_version=low, max_supported_version=high)
