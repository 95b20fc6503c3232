"""Feature levels and the controllers that register which levels they support (KIP-584, 778, 919).

Rule: a level is finalised only while every registered controller, every voter and every registered
broker supports it, fenced brokers included: a broker that is down today comes back tomorrow.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from controller.activation import base_levels
from controller.result import ControllerResult
from metadata.features import BASE, METADATA_VERSION, described, levels_of
from metadata.image import MetadataImage
from metadata.records import RegisterControllerRecord


def register_controller(
    image: MetadataImage, registration: RegisterControllerRecord
) -> ControllerResult:
    """Note what a controller said of itself; no record when the log says it already."""
    known = image.cluster.controllers.get(registration.controller_id)
    if known == registration:
        return ControllerResult(())
    return ControllerResult((registration,), reason="registration")


def begin_levels(image: MetadataImage, voters: Sequence[int]) -> ControllerResult:
    """The upgrade batch of a log that release 0.1 began; nothing while it can't be yet.

    From this batch on, readers take every record at its word.
    """
    if has_levels(image) or what_begins_later(image, voters):
        return ControllerResult(())
    return ControllerResult(base_levels(), reason="every voter runs a release with feature levels")


def what_begins_later(image: MetadataImage, voters: Sequence[int]) -> str:
    """Return why an old log can't get its levels yet; empty when it can."""
    missing = unregistered(image, voters)
    if missing:
        return f"controllers {_listed(missing)} have not registered: do they run this release?"
    return next(objections(image, BASE), "")


def has_levels(image: MetadataImage) -> bool:
    """The log says at which levels the cluster is."""
    return image.features.levels.get(METADATA_VERSION) is not None


def unregistered(image: MetadataImage, voters: Iterable[int]) -> list[int]:
    """Return the voters that have not registered themselves."""
    return sorted(voter for voter in voters if voter not in image.cluster.controllers)


def objections(image: MetadataImage, wanted: Mapping[str, int]) -> Iterator[str]:
    """Say which registered node doesn't support a level that is to be finalised, and why."""
    for kind, node_id, features in _nodes(image):
        declared = [(f.name, f.min_supported_version, f.max_supported_version) for f in features]
        for name, level in wanted.items():
            supported = levels_of(declared, name)
            if level not in supported:
                own = any(name == feature for feature, _, _ in declared)
                what = f"supports {supported}" if own else f"declares no {name}: {supported}"
                yield f"{kind} {node_id} doesn't support {described(name, level)}; it {what}"


def _nodes(image: MetadataImage) -> Iterator[tuple[str, int, Sequence[Any]]]:
    for controller in image.cluster.controllers.values():
        yield "controller", controller.controller_id, controller.features
    for broker in image.cluster.brokers.values():
        yield "broker", broker.broker_id, broker.features


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
