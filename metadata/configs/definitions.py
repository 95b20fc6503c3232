"""What Kafka defines about each config key: type, default, limits, synonyms.

The data is in `kafka_definitions.json`, which names its source and licence. It was read from
Kafka's own classes by `tests/oracles/configs/Definitions.java`. Nobody edits it by hand.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import msgspec

from metadata.records import ConfigResourceType


class Definition(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One config key of one kind of resource."""

    type: str
    """boolean, int, short, long, double, string, list, class or password."""
    default: str | None
    """None: there is none."""
    min: float | int | None = None
    max: float | int | None = None
    one_of: tuple[str, ...] = ()
    """The values that are possible; empty: any."""
    any_case: bool = False
    """The case of `one_of` doesn't matter."""
    each: tuple[str, ...] = ()
    """Of a list: the possible entries; empty: any."""
    non_empty: bool = False
    """True: an empty string, or an empty list, is refused."""
    form: str = ""
    """A rule of its own: throttled-replicas, gzip-level or auto-offset-reset."""
    internal: bool = False
    """True: Kafka never shows it."""
    dynamic: str = ""
    """Of a broker's key: per-broker or cluster-wide, as it may change while the broker runs.
    Empty: only the broker's own file sets it."""
    per_listener: bool = False
    """Of a broker's key: only with a listener's prefix."""
    synonyms: tuple[tuple[str, int], ...] = ()
    """Of a topic's or group's key: brokers' keys that set its default, the strongest first, each
    with the factor that converts its value (log.retention.hours is in hours)."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The data file."""

    source: str
    licence: str
    topic: dict[str, Definition]
    broker: dict[str, Definition]
    group: dict[str, Definition]
    client_metrics: dict[str, Definition]


def _read() -> _File:
    data = files(__package__).joinpath("kafka_definitions.json").read_bytes()
    return msgspec.json.decode(data, type=_File)


_FILE: Final = _read()
SOURCE: Final = _FILE.source
DEFINITIONS: Final[Mapping[int, Mapping[str, Definition]]] = {
    ConfigResourceType.TOPIC: _FILE.topic,
    ConfigResourceType.BROKER: _FILE.broker,
    ConfigResourceType.GROUP: _FILE.group,
    ConfigResourceType.CLIENT_METRICS: _FILE.client_metrics,
}
"""By type of resource, then by key. A type that is not here has no configs in the log."""

KINDS: Final[Mapping[str, ConfigResourceType]] = {
    "topic": ConfigResourceType.TOPIC,
    "broker": ConfigResourceType.BROKER,
    "group": ConfigResourceType.GROUP,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
}
"""The types of resources that have configs, by the word that requests use."""

_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.+)")
_MECHANISM: Final = re.compile(r"[^.]+\.(sasl\.jaas\.config|.+\.handler\.class|sasl\..+)")


def definition(resource_type: int, key: str) -> Definition | None:
    """Return the definition of a key; a broker's key may have a listener's prefix."""
    defined = DEFINITIONS.get(resource_type, {})
    found = defined.get(key)
    if found is None and resource_type == ConfigResourceType.BROKER:
        found = defined.get(without_listener(key))
    return found


def without_listener(key: str) -> str:
    """Return a broker's key without `listener.name.<listener>.` and without a SASL mechanism."""
    match = _LISTENER.fullmatch(key)
    if match is None:
        return key
    rest = match[1]
    mechanism = _MECHANISM.fullmatch(rest)
    return rest if mechanism is None or rest in _FILE.broker else mechanism[1]


def is_list(resource_type: int, key: str) -> bool:
    """Return whether APPEND and SUBTRACT work on a key. As in Kafka: of topics and brokers only."""
    if resource_type not in (ConfigResourceType.TOPIC, ConfigResourceType.BROKER):
        return False
    known = DEFINITIONS[resource_type].get(key)
    return known is not None and known.type == "list"


def is_sensitive(resource_type: int, key: str) -> bool:
    """Return whether a value is never shown. An unknown key of a broker may hold a secret."""
    known = definition(resource_type, key)
    if known is None:
        return resource_type == ConfigResourceType.BROKER
    return known.type == "password"
