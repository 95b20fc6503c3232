"""Types of resources, sources and types of configs: our words and Kafka's numbers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import KafkaFailure
from metadata.configs.definitions import KINDS
from metadata.messages import ConfigEntry

SOURCES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "DYNAMIC_TOPIC_CONFIG": 1,
        "DYNAMIC_BROKER_CONFIG": 2,
        "DYNAMIC_DEFAULT_BROKER_CONFIG": 3,
        "STATIC_BROKER_CONFIG": 4,
        "DEFAULT_CONFIG": 5,
        "DYNAMIC_BROKER_LOGGER_CONFIG": 6,
        "DYNAMIC_CLIENT_METRICS_CONFIG": 7,
        "DYNAMIC_GROUP_CONFIG": 8,
    }
)
CONFIG_TYPES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "boolean": 1,
        "string": 2,
        "int": 3,
        "short": 4,
        "long": 5,
        "double": 6,
        "list": 7,
        "class": 8,
        "password": 9,
    }
)
_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {int(number): word for word, number in KINDS.items()}
)


def kind_of(resource_type: int) -> str:
    """Return our word for Kafka's type of resource. Raises KafkaFailure INVALID_REQUEST."""
    word = _WORDS.get(resource_type)
    if word is None:
        raise KafkaFailure(
            KafkaCode.INVALID_REQUEST, f"resources of type {resource_type} have no configs here"
        )
    return word


def own_source(resource_type: int, name: str) -> str:
    """Return the source of the values that a resource has of its own."""
    return {
        "topic": "DYNAMIC_TOPIC_CONFIG",
        "broker": "DYNAMIC_BROKER_CONFIG" if name else "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "group": "DYNAMIC_GROUP_CONFIG",
        "client-metrics": "DYNAMIC_CLIENT_METRICS_CONFIG",
    }[kind_of(resource_type)]


def entry_of(entry: ConfigEntry) -> dict[str, Any]:
    """Return a config as the response to CreateTopics shows it."""
    return {
        "Name": entry.name,
        "Value": entry.value,
        "ReadOnly": entry.read_only,
        "ConfigSource": SOURCES.get(entry.source, 0),
        "IsSensitive": entry.sensitive,
    }
