"""Which value of a config applies, and where it comes from, as in Kafka's DescribeConfigs.

The strongest source first:

1. the resource itself (topic, group, client metrics subscription, broker);
2. for a topic or group: the broker, by a synonym. On a controller "the broker" is the controller
   itself, as in Kafka;
3. the default of all brokers (the broker with an empty name), by a synonym;
4. the controllers' own settings, by a synonym;
5. Kafka's default.

While eligible leader replicas are in use, a broker's own min.insync.replicas doesn't count
(KIP-966).
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from metadata.configs.definitions import DEFINITIONS, Definition, definition, is_sensitive
from metadata.features import ELR_VERSION
from metadata.image import MetadataImage
from metadata.records import ConfigResourceType

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
_NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})
_BROKER: Final = ConfigResourceType.BROKER
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")


class ConfigSource(StrEnum):
    """Where a value comes from, by Kafka's names."""

    TOPIC = "DYNAMIC_TOPIC_CONFIG"
    BROKER = "DYNAMIC_BROKER_CONFIG"
    CLUSTER = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    CLIENT_METRICS = "DYNAMIC_CLIENT_METRICS_CONFIG"
    GROUP = "DYNAMIC_GROUP_CONFIG"
    OWN = "STATIC_BROKER_CONFIG"
    DEFAULT = "DEFAULT_CONFIG"


_OF_RESOURCE: Final[Mapping[int, ConfigSource]] = {
    ConfigResourceType.TOPIC: ConfigSource.TOPIC,
    ConfigResourceType.BROKER: ConfigSource.BROKER,
    ConfigResourceType.CLIENT_METRICS: ConfigSource.CLIENT_METRICS,
    ConfigResourceType.GROUP: ConfigSource.GROUP,
}


class OwnConfigs(NamedTuple):
    """The controllers' own settings, by Kafka's keys, and which controller this is."""

    values: Mapping[str, str] = _NO_CONFIGS
    node_id: int = -1
    """Its configs, as those of a broker with this number, count for topics and groups."""


class SourcedValue(NamedTuple):
    """A value that one source has, under the name that it has there."""

    name: str
    value: str
    source: ConfigSource


class EffectiveConfig(NamedTuple):
    """One config with the value that applies."""

    name: str
    value: str | None
    source: ConfigSource
    sensitive: bool
    candidates: tuple[SourcedValue, ...]
    """All sources that have a value, the one that applies first."""


class Effective:
    """Looks up effective values in one image."""

    def __init__(self, image: MetadataImage, own: OwnConfigs) -> None:
        configs = image.configs
        self._configs = configs
        self._own = own
        self._elr = image.features.levels.get(ELR_VERSION, 0) > 0
        self._cluster = configs.of(_BROKER, "")
        self._node = self._of_broker(str(own.node_id))

    def value(self, resource_type: int, name: str, key: str) -> str | None:
        """Return the value that applies; None if there is none, not even a default."""
        found = self._candidates(resource_type, key, self._mine(resource_type, name), name)
        first = next(found, None)
        return None if first is None else first.value

    def all_of(self, resource_type: int, name: str) -> Iterator[EffectiveConfig]:
        """Yield the configs of a resource, sorted by key: those that are set, and all defaults.

        The default of all brokers (BROKER, "") has no defaults below it.
        """
        mine = self._mine(resource_type, name)
        for key in self.keys_of(resource_type, name):
            yield self._one(resource_type, name, key, mine)

    def keys_of(self, resource_type: int, name: str) -> list[str]:
        """Return the keys that `all_of` yields."""
        defined = {} if (resource_type, name) == (_BROKER, "") else DEFINITIONS[resource_type]
        shown = {key for key, known in defined.items() if not known.internal}
        return sorted(shown | set(self._mine(resource_type, name)))

    def _one(
        self, resource_type: int, name: str, key: str, mine: Mapping[str, str]
    ) -> EffectiveConfig:
        found = tuple(self._candidates(resource_type, key, mine, name))
        sensitive = is_sensitive(resource_type, key)
        if not found:
            return EffectiveConfig(key, None, ConfigSource.DEFAULT, sensitive, ())
        return EffectiveConfig(key, found[0].value, found[0].source, sensitive, found)

    def _mine(self, resource_type: int, name: str) -> Mapping[str, str]:
        if resource_type == _BROKER and name:
            return self._of_broker(name)
        return self._configs.of(resource_type, name)

    def _of_broker(self, name: str) -> Mapping[str, str]:
        found = self._configs.of(_BROKER, name)
        if self._elr:
            found.pop(MIN_ISR, None)
        return found

    def _candidates(
        self, resource_type: int, key: str, mine: Mapping[str, str], name: str
    ) -> Iterator[SourcedValue]:
        if key in mine:
            default = (resource_type, name) == (_BROKER, "")
            source = ConfigSource.CLUSTER if default else _OF_RESOURCE[resource_type]
            yield SourcedValue(key, mine[key], source)
        known = definition(resource_type, key)
        if (resource_type, name) == (_BROKER, "") or known is None:
            return
        if resource_type == _BROKER:
            if key in self._cluster:
                yield SourcedValue(key, self._cluster[key], ConfigSource.CLUSTER)
            if name == str(self._own.node_id) and key in self._own.values:
                yield SourcedValue(key, self._own.values[key], ConfigSource.OWN)
        else:
            yield from _by_synonym(known, self._node, ConfigSource.BROKER)
            yield from _by_synonym(known, self._cluster, ConfigSource.CLUSTER)
            yield from _by_synonym(known, self._own.values, ConfigSource.OWN)
        if known.default is not None:
            yield SourcedValue(key, known.default, ConfigSource.DEFAULT)


def own_or_default(resource_type: int, key: str, own: OwnConfigs) -> str | None:
    """Return what the controllers' own settings say, or Kafka's default."""
    known = DEFINITIONS[resource_type][key]
    if resource_type == _BROKER:
        return own.values.get(key, known.default)
    found = next(_by_synonym(known, own.values, ConfigSource.OWN), None)
    return known.default if found is None else found.value


def _by_synonym(
    known: Definition, values: Mapping[str, str], source: ConfigSource
) -> Iterator[SourcedValue]:
    """Yield what brokers' configs say about a topic's or a group's key."""
    for synonym, factor in known.synonyms:
        text = values.get(synonym)
        if text is not None and factor == 1:
            yield SourcedValue(synonym, text, source)
        elif text is not None and _WHOLE.fullmatch(text.strip()):
            yield SourcedValue(synonym, str(int(text) * factor), source)
