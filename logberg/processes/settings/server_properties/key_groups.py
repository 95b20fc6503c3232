"""What Logberg does with each key of Kafka's server.properties, as data.

Rule: `key_groups.toml` names every key that Kafka's brokers have, once. A key with a listener's
prefix, `listener.name.<listener>.`, is about that listener: it counts for Logberg if the listener
is one of its own.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

from metadata.configs.definitions import Definition, definition, without_listener
from metadata.records import ConfigResourceType

OWN: Final = "logberg."
"""Keys with this prefix are ours. Kafka doesn't know them, and ignores them with a warning."""
_FREE_PREFIXES: Final = ("rlmm.config.", "rsm.config.")
"""Kafka hands these to a plug-in of the brokers."""
_PLUG_INS: Final = frozenset({"create.topic.policy.class.name", "alter.config.policy.class.name"})


class KeyGroup(StrEnum):
    """What becomes of a key."""

    USED = "used"
    CONFIG = "configs"
    IGNORED = "ignored"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class KeyRule(NamedTuple):
    """What becomes of one key."""

    group: KeyGroup
    settings: str = ""
    """Of a used key: the settings that it becomes."""
    why: str = ""
    """What a used key does, or why a key is ignored or refused."""
    unless: str | None = None
    """Of a refused key: the value that changes nothing, and is accepted."""
    of_brokers: bool = False
    """Of a refused key: only brokers use it, so any other process ignores it."""


class _Used(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    settings: str
    does: str


class _Refused(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    why: str
    unless: str | None = None
    of_brokers: bool = False


class _Configs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: tuple[str, ...]


class _Ignored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    why: str
    keys: tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    used: dict[str, _Used]
    refused: dict[str, _Refused]
    configs: _Configs
    ignored: tuple[_Ignored, ...]


def _read() -> dict[str, KeyRule]:
    data = files(__package__).joinpath("key_groups.toml").read_bytes()
    table = msgspec.toml.decode(data, type=_Table)
    rows = [(key, KeyRule(KeyGroup.USED, of.settings, of.does)) for key, of in table.used.items()]
    rows += [
        (key, KeyRule(KeyGroup.REFUSED, "", of.why, of.unless, of.of_brokers))
        for key, of in table.refused.items()
    ]
    rows += [(key, KeyRule(KeyGroup.CONFIG)) for key in table.configs.keys]
    rows += [
        (key, KeyRule(KeyGroup.IGNORED, why=of.why)) for of in table.ignored for key in of.keys
    ]
    found = dict(rows)
    assert len(found) == len(rows), "a key stands in key_groups.toml twice"
    return found


KEYS: Final[Mapping[str, KeyRule]] = _read()
"""By key, without a listener's prefix."""


def rule_of(key: str) -> KeyRule:
    """Return what becomes of a key, which may have a listener's prefix."""
    found = KEYS.get(without_listener(key))
    if found is None and key.startswith(_FREE_PREFIXES):
        return KeyRule(KeyGroup.IGNORED, why="it is for a plug-in of the brokers")
    return found or KeyRule(KeyGroup.UNKNOWN)


def definition_of(key: str) -> Definition | None:
    """Return Kafka's definition of a key; None: any text may be its value."""
    if key in _PLUG_INS:
        # Kafka demands the name of a Java class, and ours is that of a Python object.
        return None
    return definition(ConfigResourceType.BROKER, key)


def similar(key: str) -> str | None:
    """Return the known key that is written most like this one; None: no key is."""
    found = get_close_matches(key, KEYS, n=1, cutoff=0.8)
    return found[0] if found else None
