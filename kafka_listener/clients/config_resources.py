"""Answers ListConfigResources (api key 74, versions 0 and 1): what has configs (KIP-1142).

Rule, as in Kafka: all topics and all registered brokers are listed, and of client metrics
subscriptions and groups those that have a config. Version 0 asks for client metrics only.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, KafkaFailure, KafkaRequest
from kafka_listener.clients.image_source import ImageSource
from metadata.image import MetadataImage
from metadata.records import ConfigResourceType

LIST_CONFIG_RESOURCES: Final = 74


def _brokers(image: MetadataImage) -> Iterable[str]:
    return map(str, image.cluster.ids)


_NAMES: Final[Mapping[int, Callable[[MetadataImage], Iterable[str]]]] = MappingProxyType(
    {
        ConfigResourceType.TOPIC: lambda image: image.topics.names,
        ConfigResourceType.BROKER: _brokers,
        ConfigResourceType.BROKER_LOGGER: _brokers,
        ConfigResourceType.CLIENT_METRICS: lambda image: image.configs.named(
            ConfigResourceType.CLIENT_METRICS
        ),
        ConfigResourceType.GROUP: lambda image: image.configs.named(ConfigResourceType.GROUP),
    }
)


def list_config_resources(source: ImageSource, request: KafkaRequest, answer: Answer) -> None:
    """Answer one request. Raises KafkaFailure."""
    why = source.refusal()
    if why:
        raise KafkaFailure(KafkaCode.BROKER_NOT_AVAILABLE, why)
    kinds: list[int] = [ConfigResourceType.CLIENT_METRICS]
    if request.version > 0:
        kinds = list(dict.fromkeys(request.fields["ResourceTypes"])) or list(_NAMES)
    unknown = [kind for kind in kinds if kind not in _NAMES]
    if unknown:
        raise KafkaFailure(
            KafkaCode.UNSUPPORTED_VERSION, f"there is no type of resource {unknown[0]}"
        )
    image = source.image
    answer(
        {
            "ConfigResources": (
                {"ResourceName": name, "ResourceType": int(kind)}
                for kind in kinds
                for name in _NAMES[kind](image)
            )
        }
    )
