"""Feature levels, and the controllers that register which levels they support (KIP-584, 778, 919).

A level is finalised only if every registered controller, every voter and every registered broker
supports it. Fenced brokers count too, because a broker that is down today may come back tomorrow.

A level is lowered only if nothing that stays in the log came with the higher one. Otherwise a
downgrade could lose it.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from controller.managers.configs import elr_safety_records
from controller.managers.elr import empty_elrs
from controller.managers.node_ids import check_controller_id
from controller.managers.sweep import Sweep
from controller.managers.topic_rules import elr_enabled
from controller.result import ControllerResult
from metadata.configs.effective import OwnConfigs
from metadata.errors import ErrorCode, LogbergError
from metadata.features import (
    BASE,
    BROUGHT,
    ELR_VERSION,
    METADATA_VERSION,
    NEEDS,
    OF_KAFKAS_BROKERS,
    SUPPORTED,
    described,
    known_levels,
    levels_of,
)
from metadata.image import MetadataImage
from metadata.messages import (
    FeatureUpdate,
    UpdatedFeature,
    UpdateFeaturesReply,
    UpdateFeaturesRequest,
    UpgradeType,
)
from metadata.record_levels import brought_between
from metadata.records import FeatureLevelRecord, Record, RegisterControllerRecord


def register_controller(
    image: MetadataImage, registration: RegisterControllerRecord
) -> ControllerResult:
    """Register a controller. No record if the log has the same registration already.

    Raises LogbergError INVALID_REGISTRATION if a broker has its id, and ids are shared.
    """
    known = image.cluster.controllers.get(registration.controller_id)
    if known == registration:
        return ControllerResult(())
    if known is None:
        check_controller_id(image, registration)
    return ControllerResult((registration,), reason="registration")


def level_records(
    levels: Mapping[str, int], image: MetadataImage, own: OwnConfigs
) -> tuple[Record, ...]:
    """Return the records that finalise the levels at which a log begins.

    `own`: the controllers' own configs. ELR needs one min ISR for all brokers.
    """
    safety = elr_safety_records(image, own) if levels.get(ELR_VERSION, 0) else ()
    return (*safety, *(FeatureLevelRecord(*each) for each in sorted(levels.items()) if each[1]))


def begin_levels(image: MetadataImage, voters: Sequence[int]) -> ControllerResult:
    """Return the upgrade batch of a log that release 0.1 began; no records if it must wait.

    From this batch on, replay uses the epoch and flags in an amended registration (ADR 0015).
    """
    if has_levels(image) or what_begins_later(image, voters):
        return ControllerResult(())
    records = [FeatureLevelRecord(*each) for each in sorted(BASE.items())]
    return ControllerResult(records, reason="every voter runs a release with feature levels")


def what_begins_later(image: MetadataImage, voters: Iterable[int]) -> str:
    """Return why an old log can't get its levels yet; empty if it can."""
    return _who_is_missing(image, voters) or next(objections(image, BASE), "")


def has_levels(image: MetadataImage) -> bool:
    """Return whether the log says at which levels the cluster is."""
    return image.features.levels.get(METADATA_VERSION) is not None


def update_features(
    image: MetadataImage,
    voters: Iterable[int],
    request: UpdateFeaturesRequest,
    own: OwnConfigs,
    names_key: Callable[[MetadataImage, Mapping[str, int]], tuple[Record, ...]],
    sweep: Sweep | None = None,
) -> Generator[None, None, ControllerResult]:
    """Raise or lower levels: all that the request names, or none.

    `own`: the controllers' own configs. To switch ELR on needs one min ISR for all brokers. To
    switch it off empties all ELRs first, in the rounds of `sweep`. `names_key`: returns the record
    with which the log names the cluster key, at some levels.

    Raises LogbergError: INVALID_UPDATE_VERSION for a level that is not possible,
    FEATURE_UPDATE_FAILED if the cluster is not ready for any update.
    """
    twice = [name for name, n in Counter(u.feature for u in request.updates).items() if n > 1]
    if twice:
        raise LogbergError(ErrorCode.INVALID_REQUEST, f"updates: {twice[0]} is there twice")
    if not has_levels(image):
        why = what_begins_later(image, voters) or "it gets them once all voters are up"
        raise LogbergError(
            ErrorCode.FEATURE_UPDATE_FAILED, f"the log has no feature levels yet: {why}"
        )
    for update in request.updates:
        _check_step(update, image.features.levels.get(update.feature, 0))
    changes = {
        update.feature: update.max_version_level
        for update in request.updates
        if update.max_version_level != image.features.levels.get(update.feature, 0)
    }
    missing = _who_is_missing(image, voters) if changes else ""
    if missing:
        raise LogbergError(ErrorCode.FEATURE_UPDATE_FAILED, missing)
    objection = next(objections(image, changes), "")
    if objection:
        raise _invalid(f"{objection}. Upgrade it first, or unregister it if it is gone")
    levels = {**dict(image.features.levels.items()), **changes}
    _check_needs(levels)
    reply = UpdateFeaturesReply(
        features=tuple(
            UpdatedFeature(u.feature, image.features.levels.get(u.feature, 0), u.max_version_level)
            for u in request.updates
        ),
        dry_run=request.dry_run,
    )
    records: list[Record] = [FeatureLevelRecord(*change) for change in sorted(changes.items())]
    if changes.get(ELR_VERSION, 0) and not elr_enabled(image):
        records = [*elr_safety_records(image, own), *records]
    if changes.get(ELR_VERSION) == 0 and elr_enabled(image):
        sweep = sweep or Sweep()
        emptied = yield from empty_elrs(image, sweep)
        if sweep.more:
            return ControllerResult(emptied, reason="ELR is switched off", unfinished=True)
        records = [*emptied, *records]
    if changes:
        records += names_key(image, levels)
    return ControllerResult(records, reply)


def objections(image: MetadataImage, wanted: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each registered node that doesn't support one of these levels.

    Controllers need not support what only Kafka's brokers do.
    """
    for kind, node_id, features in registered_nodes(image):
        declared = [(f.name, f.min_supported_version, f.max_supported_version) for f in features]
        for name, level in wanted.items():
            if kind == "controller" and name in OF_KAFKAS_BROKERS:
                continue
            supported = levels_of(declared, name)
            if level not in supported:
                own = any(name == feature for feature, _, _ in declared)
                what = f"supports {supported}" if own else f"declares none, which means {supported}"
                yield f"{kind} {node_id} doesn't support {described(name, level)}: it {what}"


def registered_nodes(image: MetadataImage) -> Iterator[tuple[str, int, Sequence[Any]]]:
    """Yield (controller or broker, node id, declared features)."""
    for controller in image.cluster.controllers.values():
        yield "controller", controller.controller_id, controller.features
    for broker in image.cluster.brokers.values():
        yield "broker", broker.broker_id, broker.features


def _check_step(update: FeatureUpdate, current: int) -> None:
    """Check that this build can take a feature to that level. Raises LogbergError."""
    name, level, kind = update.feature, update.max_version_level, update.upgrade_type
    supported = known_levels(name)
    if supported is None:
        raise _invalid(f"there is no feature {name!r}; this build knows {', '.join(SUPPORTED)}")
    if level not in supported:
        raise _invalid(f"{described(name, level)}: this build supports {supported}")
    if kind is UpgradeType.UNSAFE_DOWNGRADE:
        raise _invalid(f"{name}: unsafe downgrades are not offered, since they lose metadata")
    if level < current and kind is UpgradeType.UPGRADE:
        raise _invalid(f"{name} is at {current}: to go to {level} is a downgrade, so ask for one")
    if level > current and kind is UpgradeType.SAFE_DOWNGRADE:
        raise _invalid(f"{name} is at {current}: to go to {level} is an upgrade, so ask for one")
    lost = _what_could_be_lost(name, level, current)
    if lost:
        raise _invalid(
            f"{name} is at {current}, and {lost} could be in the log: a downgrade to {level} might "
            "lose metadata, so it is refused"
        )


def _what_could_be_lost(name: str, level: int, current: int) -> str:
    if level >= current or name == ELR_VERSION:
        # What ELR brought is emptied before it is switched off.
        return ""
    others = [BROUGHT.get((name, each), "") for each in range(level + 1, current + 1)]
    return ", ".join([*brought_between(name, level, current), *filter(None, others)])


def _check_needs(levels: Mapping[str, int]) -> None:
    """Check that features have the levels that others need. Raises LogbergError."""
    for (name, level), (other, needed) in NEEDS.items():
        if levels.get(name, 0) >= level and levels.get(other, 0) < needed:
            raise _invalid(
                f"{described(name, level)} needs {described(other, needed)}, which would be at "
                f"{levels.get(other, 0)}"
            )


def _who_is_missing(image: MetadataImage, voters: Iterable[int]) -> str:
    missing = sorted(voter for voter in voters if voter not in image.cluster.controllers)
    if not missing:
        return ""
    names = ", ".join(map(str, missing))
    return (
        f"voters that have not registered themselves: {names}. Start them on this release, so that "
        "the cluster knows which levels they support"
    )


def _invalid(message: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_UPDATE_VERSION, message)
