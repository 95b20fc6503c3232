"""Checks all configs that a resource would have, as Kafka's controllers and brokers do.

Kafka's controller checks topics, groups and client metrics. A Kafka broker checks brokers' configs
before it forwards a change. Here administrators ask the controller directly, so the controller
checks these too, with the broker's rules and errors (KIP-226).
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from metadata.configs.definitions import DEFINITIONS, definition, without_listener
from metadata.configs.effective import OwnConfigs, own_or_default
from metadata.configs.values import ConfigValueError, Parsed, parse
from metadata.errors import ErrorCode, LogbergError
from metadata.records import ConfigResourceType

Values = Mapping[str, str]

VALUE_BYTES_MAX: Final = 32767
_GROUP_LIMITS: Final[Mapping[str, tuple[str | None, str | None]]] = {
    **{
        f"{kind}.{what}": (f"group.{kind}.min.{what}", f"group.{kind}.max.{what}")
        for kind in ("consumer", "share", "streams")
        for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
    },
    **{
        f"share.{what}": (f"group.share.min.{what}", f"group.share.max.{what}")
        for what in (
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
        )
    },
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
    "streams.num.warmup.replicas": (None, "group.streams.max.warmup.replicas"),
    "streams.task.offset.interval.ms": ("group.streams.min.task.offset.interval.ms", None),
}
"""By a group's key: the brokers' keys that hold its limits (KIP-848, 932, 1071)."""
_INTERVAL_MS: Final = (100, 3_600_000)
_MATCHES: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def check(resource_type: int, name: str, before: Values, after: Values, own: OwnConfigs) -> None:
    """Raise LogbergError if a resource may not have the configs `after`.

    `before` is what it has now. The code is INVALID_CONFIG, or INVALID_REQUEST where Kafka says so.
    """
    for key, text in after.items():
        if text != before.get(key) and len(text.encode()) > VALUE_BYTES_MAX:
            raise LogbergError(
                ErrorCode.INVALID_CONFIG,
                f"{key}: the value has more than {VALUE_BYTES_MAX} bytes",
                {"config": key},
            )
    _CHECKS[resource_type](name, before, after, own)


def _topic(_name: str, before: Values, after: Values, own: OwnConfigs) -> None:
    """KIP-405, 950 and LogConfig: topics also start from the controllers' own settings."""
    values = _parsed(ConfigResourceType.TOPIC, after, "Unknown topic config name")

    def of(key: str) -> Parsed:
        if key in values:
            return values[key]
        text = own_or_default(ConfigResourceType.TOPIC, key, own)
        assert text is not None
        return parse(key, text, DEFINITIONS[ConfigResourceType.TOPIC][key])

    least, most = of("min.compaction.lag.ms"), of("max.compaction.lag.ms")
    if _number(least) > _number(most):
        raise _invalid(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})",
            "min.compaction.lag.ms"
            if "min.compaction.lag.ms" in after
            else "max.compaction.lag.ms",
        )
    remote = of("remote.storage.enable")
    if not remote:
        was = before.get("remote.storage.enable", "").strip().lower() == "true"
        if was and not of("remote.log.delete.on.disable"):
            raise _invalid(
                "It is invalid to disable remote storage without deleting remote data. To keep the "
                "data and only read it, set remote.storage.enable=true and "
                "remote.log.copy.disable=true. To delete it, set remote.storage.enable=false and "
                "remote.log.delete.on.disable=true.",
                "remote.storage.enable",
            )
        return
    if own_or_default(_BROKER, "remote.log.storage.system.enable", own) != "true":
        raise _invalid(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage (remote.storage.enable).",
            "remote.storage.enable",
        )
    if of("cleanup.policy") not in (("delete",), ()):
        raise _invalid(
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy "
            "being an empty list.",
            "cleanup.policy",
        )
    _check_local_retention(of)


def _check_local_retention(of: Callable[[str], Parsed]) -> None:
    """What is kept locally can't be more than what is kept; -1: no limit, -2: as much."""
    for unit in ("ms", "bytes"):
        kept, local = of(f"retention.{unit}"), of(f"local.retention.{unit}")
        kept_here = _number(local)
        if _number(kept) == -1 or kept_here == -2:
            continue
        if kept_here == -1 or kept_here > _number(kept):
            raise _invalid(
                f"Invalid value {local} for configuration local.retention.{unit}: Value must not "
                f"be {'-1 as' if kept_here == -1 else 'more than'} retention.{unit} property "
                f"value: {kept}",
                f"local.retention.{unit}",
            )


def _group(_name: str, _before: Values, after: Values, own: OwnConfigs) -> None:
    values = _parsed(ConfigResourceType.GROUP, after, "Unknown group config name")
    for key, value in values.items():
        _check_limits(key, value, own)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if (session in values or heartbeat in values) and _group_number(
            session, values, own
        ) <= _group_number(heartbeat, values, own):
            raise _invalid(f"{session} must be greater than {heartbeat}", session)
    assignors = own_or_default(_BROKER, "group.streams.assignors", own) or ""
    chosen = values.get("streams.assignor.name")
    if chosen is not None and chosen not in assignors.split(","):
        raise _invalid(
            f"streams.assignor.name {chosen!r} is not one of: {assignors}", "streams.assignor.name"
        )
    tags = values.get("streams.rack.aware.assignment.tags")
    if isinstance(tags, tuple) and len(set(tags)) < len(tags):
        raise _invalid(
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
            "streams.rack.aware.assignment.tags",
        )


def _check_limits(key: str, value: Parsed, own: OwnConfigs) -> None:
    """Refuse what is beyond the brokers' limits, in Kafka's words."""
    low_key, high_key = _GROUP_LIMITS.get(key, (None, None))
    low, high = _limit(low_key, own), _limit(high_key, own)
    if low is not None and _number(value) < low:
        raise _invalid(f"{key} must be greater than or equal to {low_key}, which is {low}", key)
    if high is not None and _number(value) > high:
        raise _invalid(f"{key} must be less than or equal to {high_key}, which is {high}", key)


def _client_metrics(_name: str, _before: Values, after: Values, _own: OwnConfigs) -> None:
    """KIP-714."""
    known = DEFINITIONS[ConfigResourceType.CLIENT_METRICS]
    for key in after:
        if key not in known:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"Unknown client metrics configuration: {key}",
                {"config": key},
            )
    values = _parsed(ConfigResourceType.CLIENT_METRICS, after, "")
    interval = values.get("interval.ms")
    if interval is not None and not _INTERVAL_MS[0] <= _number(interval) <= _INTERVAL_MS[1]:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval} for interval.ms, interval must be between "
            f"{_INTERVAL_MS[0]} and {_INTERVAL_MS[1]} (1 hour)",
            {"config": "interval.ms"},
        )
    patterns = values.get("match", ())
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        name, equals, expression = pattern.partition("=")
        if not equals or name.strip() not in _MATCHES or not _is_expression(expression.strip()):
            raise _invalid(f"Illegal client matching pattern: {pattern}", "match")


def _broker(name: str, _before: Values, after: Values, _own: OwnConfigs) -> None:
    """KIP-226: only what may change while a broker runs, and only where it may be set."""
    fixed = [
        key
        for key in after
        if (known := DEFINITIONS[_BROKER].get(key)) is not None and not known.dynamic
    ]
    if fixed:
        raise _refused(f"Cannot update these configs dynamically: {fixed}", fixed[0])
    bare = [
        key
        for key in after
        if (known := DEFINITIONS[_BROKER].get(key)) is not None and known.per_listener
    ]
    if bare:
        raise _refused(
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: {bare}",
            bare[0],
        )
    for key, text in after.items():
        known = definition(_BROKER, key)
        if known is not None and known.dynamic:
            try:
                value = parse(without_listener(key), text, known)
            except ConfigValueError as error:
                raise _refused(str(error), key) from None
            if isinstance(value, tuple) and len(set(value)) < len(value):
                raise _refused(f"Configuration '{key}' values must not be duplicated.", key)
    if not name:
        own = [
            key
            for key in after
            if (known := definition(_BROKER, key)) is not None and known.dynamic == "per-broker"
        ]
        if own:
            raise _refused(
                "Cannot update these configs at default cluster level, broker id must be "
                f"specified: {own}",
                own[0],
            )


_BROKER: Final = ConfigResourceType.BROKER
_CHECKS: Final[Mapping[int, Callable[[str, Values, Values, OwnConfigs], None]]] = {
    ConfigResourceType.TOPIC: _topic,
    ConfigResourceType.BROKER: _broker,
    ConfigResourceType.GROUP: _group,
    ConfigResourceType.CLIENT_METRICS: _client_metrics,
}


def own_problems(own: Values) -> list[str]:
    """Return what is wrong with a controller's own settings by Kafka's keys, a sentence each."""
    found = []
    for key, text in own.items():
        known = DEFINITIONS[_BROKER].get(key)
        if known is None:
            found.append(f"{key} is not a config of Kafka's brokers; check how it is spelt.")
            continue
        try:
            parse(key, text, known)
        except ConfigValueError as error:
            found.append(f"{error}.")
    return found


def _parsed(resource_type: int, values: Values, unknown: str) -> dict[str, Parsed]:
    found: dict[str, Parsed] = {}
    for key, text in values.items():
        known = DEFINITIONS[resource_type].get(key)
        if known is None:
            raise _invalid(f"{unknown}: {key}", key)
        try:
            found[key] = parse(key, text, known)
        except ConfigValueError as error:
            raise _invalid(str(error), key) from None
    return found


def _limit(key: str | None, own: OwnConfigs) -> int | None:
    text = None if key is None else own_or_default(_BROKER, key, own)
    return None if text is None else int(text)


def _group_number(key: str, values: Mapping[str, Parsed], own: OwnConfigs) -> float:
    if key in values:
        return _number(values[key])
    text = own_or_default(ConfigResourceType.GROUP, key, own)
    assert text is not None
    return int(text)


def _number(value: Parsed) -> float:
    assert isinstance(value, (int, float))
    return value


def _is_expression(text: str) -> bool:
    """Return whether a text is a regular expression. Kafka reads it as Java does."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return bool(text) and "=" not in text


def _invalid(message: str, key: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_CONFIG, message, {"config": key})


def _refused(message: str, key: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REQUEST, message, {"config": key})
