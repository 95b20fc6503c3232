"""The table of Kafka's keys: each key is in one group, and the groups say the truth."""

import ast
from pathlib import Path

import pytest

from logberg.processes.settings import server_properties
from logberg.processes.settings.broker_settings import BrokerSettings
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.server_properties.key_groups import (
    KEYS,
    OWN,
    KeyGroup,
    rule_of,
    similar,
)
from metadata.configs.checks import _GROUP_LIMITS
from metadata.configs.definitions import DEFINITIONS
from metadata.records import ConfigResourceType
from tests.docs import source

_BROKER_KEYS = DEFINITIONS[ConfigResourceType.BROKER]
_BESIDE = {
    "super.users",
    "allow.everyone.if.no.acl.found",
    "group.streams.assignors",
    "remote.log.storage.system.enable",
}
"""Of Kafka's authorizer, which has keys of its own; and keys that checks of configs ask for."""


def keys_in(group: KeyGroup) -> set[str]:
    return {key for key, rule in KEYS.items() if rule.group is group}


def test_every_key_of_kafkas_brokers_has_its_group() -> None:
    assert set(_BROKER_KEYS) - set(KEYS) == set()


def test_no_key_is_made_up() -> None:
    """What Kafka 4.4 does not have is ours, the authorizer's, or of older releases."""
    more = set(KEYS) - set(_BROKER_KEYS)
    of_old = {key for key in more if rule_of(key).group in (KeyGroup.IGNORED, KeyGroup.REFUSED)}
    assert {key for key in more - of_old if not key.startswith(OWN)} <= _BESIDE
    assert all("ookeeper" in key or "drop" in rule_of(key).why for key in of_old), of_old


def test_the_static_configs_are_those_that_configs_resolve_to() -> None:
    resolved = {
        synonym
        for kind in (ConfigResourceType.TOPIC, ConfigResourceType.GROUP)
        for known in DEFINITIONS[kind].values()
        for synonym, _ in known.synonyms
    }
    resolved |= {key for pair in _GROUP_LIMITS.values() for key in pair if key is not None}
    assert keys_in(KeyGroup.CONFIG) == (resolved | _BESIDE) & set(_BROKER_KEYS)


def named_in_code() -> set[str]:
    return {
        node.value
        for path in Path(server_properties.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_key_that_code_reads_is_used() -> None:
    """The code gets no value of a key that is not."""
    assert (named_in_code() & set(KEYS)) - keys_in(KeyGroup.USED) == set()


def test_every_used_key_is_read() -> None:
    """A key that the table calls used, and that no code names, would be dropped in silence."""
    named = named_in_code()
    stores = {
        f"ssl.{what}.{of}" for what in ("keystore", "truststore") for of in ("type", "location")
    }
    assert keys_in(KeyGroup.USED) - named - stores == set()


def test_the_settings_that_the_table_names_exist() -> None:
    known = {s.key for kind in (ControllerSettings, BrokerSettings) for s in source.settings(kind)}
    named = {
        name.strip() for rule in KEYS.values() for name in rule.settings.split(",") if rule.settings
    }
    assert named - known == set()


def test_every_reason_is_a_sentence_without_its_end() -> None:
    for key, rule in KEYS.items():
        if rule.group is not KeyGroup.CONFIG:
            assert rule.why, key
            assert not rule.why.endswith("."), key


@pytest.mark.parametrize(
    ("key", "group"),
    [
        ("node.id", KeyGroup.USED),
        ("num.network.threads", KeyGroup.IGNORED),
        ("log.retention.hours", KeyGroup.CONFIG),
        ("zookeeper.connect", KeyGroup.REFUSED),
        ("nmu.partitions", KeyGroup.UNKNOWN),
        ("listener.name.controller.ssl.keystore.location", KeyGroup.USED),
        ("listener.name.client.scram-sha-256.sasl.jaas.config", KeyGroup.IGNORED),
        ("rsm.config.bucket", KeyGroup.IGNORED),
    ],
)
def test_a_keys_group(key: str, group: KeyGroup) -> None:
    assert rule_of(key).group is group


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("num.partition", "num.partitions"),
        ("default.replicaton.factor", "default.replication.factor"),
        ("delete.topics.enable", "delete.topic.enable"),
        ("something.else.entirely", None),
    ],
)
def test_a_near_miss_is_named(key: str, near: str | None) -> None:
    assert similar(key) == near
