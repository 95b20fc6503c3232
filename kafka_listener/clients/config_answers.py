"""Answers DescribeConfigs (api key 32, versions 1 to 4): the configs of resources, with sources.

Rule: a resource that the client may not describe is answered with an error of its own, as in Kafka.
A client gets the whole list, with Kafka's defaults, because kafka-python's `alter_configs`
refuses keys that DescribeConfigs didn't return. A secret value is never in an answer.
`Documentation` is always null: Logberg knows the names, types, defaults and limits of Kafka's keys,
and not their texts.

What a topic inherits comes from the node that answers: its own dynamic configs, those of all
brokers, and the keys in its settings, in Kafka's order. Any registered broker is described, not
only the one that answers.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from controller.access.rights import DESCRIBE_CONFIGS as ON_CLUSTER
from controller.access.rights import AnyOf, Right
from kafka_listener.asking.in_steps import for_each
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Fields, KafkaFailure, KafkaRequest
from kafka_listener.clients.image_source import ImageSource
from kafka_listener.clients.metadata_answers import topic_name_code
from kafka_listener.clients.sliced_answers import Making, SlicedAnswers
from kafka_listener.wire.body_parts import Parts
from kafka_listener.wire.messages import encode_response_in_steps
from metadata.configs.definitions import definition
from metadata.configs.effective import ConfigSource, Effective, EffectiveConfig
from metadata.image import MetadataImage
from metadata.records import AclOperation, AclResourceType, ConfigResourceType

DESCRIBE_CONFIGS: Final = 32
_DIGITS_MAX: Final = 10
RESOURCES_MAX: Final = 10_000
"""The most resources in one request: each may have a few thousand bytes in the answer."""
_TYPE_OF_VALUE: Final[Mapping[str, int]] = MappingProxyType(
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
"""Kafka's numbers of ConfigType; 0 is unknown."""
_SOURCES: Final[Mapping[ConfigSource, int]] = MappingProxyType(
    {
        ConfigSource.TOPIC: 1,
        ConfigSource.BROKER: 2,
        ConfigSource.CLUSTER: 3,
        ConfigSource.OWN: 4,
        ConfigSource.DEFAULT: 5,
        ConfigSource.CLIENT_METRICS: 7,
        ConfigSource.GROUP: 8,
    }
)
"""Kafka's numbers of ConfigSource."""

_REFUSALS: Final[Mapping[int, tuple[KafkaCode, AclResourceType]]] = MappingProxyType(
    {
        ConfigResourceType.TOPIC: (KafkaCode.TOPIC_AUTHORIZATION_FAILED, AclResourceType.TOPIC),
        ConfigResourceType.GROUP: (KafkaCode.GROUP_AUTHORIZATION_FAILED, AclResourceType.GROUP),
    }
)


class ConfigAnswers:
    """Answers DescribeConfigs from an image."""

    def __init__(self, source: ImageSource, answers: SlicedAnswers) -> None:
        self._source = source
        self._answers = answers

    def answer(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer one request. Raises KafkaFailure."""
        why = self._source.refusal()
        if why:
            raise KafkaFailure(KafkaCode.BROKER_NOT_AVAILABLE, why)

        def on_made(body: Parts | Exception) -> None:
            why = self._source.refusal()
            if why:
                answer(_failed(request, KafkaCode.BROKER_NOT_AVAILABLE, why))
            elif isinstance(body, KafkaFailure):
                answer(_failed(request, body.code, body.message))
            elif isinstance(body, Exception):
                text = f"the answer could not be made: {body!r}"
                answer(_failed(request, KafkaCode.UNKNOWN_SERVER_ERROR, text))
            else:
                answer(body)

        self._answers.make(self._made(request), on_made)

    def _made(self, request: KafkaRequest) -> Making:
        resources = yield from _distinct(request.fields["Resources"])
        image = self._source.image
        effective = Effective(image, self._source.own_configs)
        nodes = _Nodes(image, self._source.node_id)
        synonyms = bool(request.fields.get("IncludeSynonyms"))
        described = (
            self._refused(request, one) or _described(nodes, effective, one, synonyms=synonyms)
            for one in resources
        )
        response = {"Results": described}
        return (yield from encode_response_in_steps(DESCRIBE_CONFIGS, request.version, response))

    def _refused(self, request: KafkaRequest, resource: Fields) -> Fields | None:
        """Return the answer about a resource that the client may not describe; None: it may.

        As in Kafka, configs of brokers and of client metrics are the cluster's. Our own routes take
        the right on the cluster for topics and groups, too (`route_access`).
        """
        kind, name = resource["ResourceType"], resource["ResourceName"]
        code, of_kind = _REFUSALS.get(kind, (KafkaCode.CLUSTER_AUTHORIZATION_FAILED, None))
        need: AnyOf = (ON_CLUSTER,)
        if of_kind is not None:
            need = (Right(AclOperation.DESCRIBE_CONFIGS, of_kind, name), ON_CLUSTER)
        refused = self._source.refused_part(request, need)
        return None if refused is None else _error(resource, code, refused.message)


def _distinct(resources: Sequence[Fields]) -> Generator[None, None, Sequence[Fields]]:
    """Return each resource once, in the order of the request. Raises KafkaFailure."""
    found: dict[tuple[int, str, tuple[str, ...]], Fields] = {}

    def note(one: Fields) -> None:
        keys = tuple(one["ConfigurationKeys"] or ())
        found.setdefault((one["ResourceType"], one["ResourceName"], keys), one)

    yield from for_each(note, resources)
    if len(found) > RESOURCES_MAX:
        raise KafkaFailure(
            KafkaCode.INVALID_REQUEST,
            f"a request describes at most {RESOURCES_MAX} resources; send several requests",
        )
    return list(found.values())


class _Nodes(NamedTuple):
    """What may be described."""

    image: MetadataImage
    own_id: int

    def has(self, name: str) -> bool:
        """Return whether a broker is registered, or is the node that answers."""
        if not name.isascii() or not name.isdecimal() or len(name) > _DIGITS_MAX:
            return False
        return int(name) == self.own_id or int(name) in self.image.cluster.brokers


def _described(nodes: _Nodes, effective: Effective, resource: Fields, *, synonyms: bool) -> Fields:
    kind, name = resource["ResourceType"], resource["ResourceName"]
    try:
        _check_exists(nodes, kind, name)
    except KafkaFailure as failure:
        return _error(resource, failure.code, failure.message)
    keys = resource["ConfigurationKeys"]
    wanted = frozenset(keys) if keys else None
    configs = _entries(effective, kind, name, wanted, synonyms=synonyms)
    return {"ResourceType": kind, "ResourceName": name, "ErrorMessage": None, "Configs": configs}


def _check_exists(nodes: _Nodes, kind: int, name: str) -> None:
    """Refuse a resource that has no configs to describe. Raises KafkaFailure."""
    if kind == ConfigResourceType.TOPIC:
        if name not in nodes.image.topics.by_name:
            raise KafkaFailure(topic_name_code(name), f"there is no topic {name[:249]!r}")
    elif kind == ConfigResourceType.BROKER:
        if name and not nodes.has(name):
            raise KafkaFailure(
                KafkaCode.INVALID_REQUEST,
                f"broker {name[:50]!r} is not registered; an empty name is the default of all",
            )
    elif kind in {ConfigResourceType.CLIENT_METRICS, ConfigResourceType.GROUP}:
        if not name:
            raise KafkaFailure(KafkaCode.INVALID_REQUEST, "the resource has no name")
    elif kind == ConfigResourceType.BROKER_LOGGER:
        raise KafkaFailure(
            KafkaCode.INVALID_REQUEST,
            "Logberg's loggers have no levels of their own: set log_level",
        )
    else:
        raise KafkaFailure(KafkaCode.INVALID_REQUEST, f"there is no type of resource {kind}")


def _entries(
    effective: Effective, kind: int, name: str, wanted: frozenset[str] | None, *, synonyms: bool
) -> Iterator[Fields]:
    for config in effective.all_of(kind, name):
        if wanted is None or config.name in wanted:
            yield _entry(kind, config, synonyms=synonyms)


def _entry(kind: int, config: EffectiveConfig, *, synonyms: bool) -> Fields:
    known = definition(kind, config.name)
    shown = config.candidates if synonyms else ()
    return {
        "Name": config.name,
        "Value": None if config.sensitive else config.value,
        "ReadOnly": kind == ConfigResourceType.BROKER and known is not None and not known.dynamic,
        "ConfigSource": _SOURCES[config.source],
        "IsSensitive": config.sensitive,
        "Synonyms": [
            {
                "Name": one.name,
                "Value": None if config.sensitive else one.value,
                "Source": _SOURCES[one.source],
            }
            for one in shown
        ],
        "ConfigType": 0 if known is None else _TYPE_OF_VALUE.get(known.type, 0),
        "Documentation": None,
    }


def _failed(request: KafkaRequest, code: KafkaCode, message: str) -> Fields:
    resources = request.fields["Resources"]
    return {"Results": (_error(one, code, message) for one in resources)}


def _error(resource: Fields, code: KafkaCode, message: str) -> Fields:
    return {
        "ErrorCode": int(code),
        "ErrorMessage": message,
        "ResourceType": resource["ResourceType"],
        "ResourceName": resource["ResourceName"],
    }
