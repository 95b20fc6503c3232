"""Answers Metadata (api key 3, versions 0 to 13): the brokers, and the partitions of topics.

Rules, as in Kafka: version 0 asks for all topics by an empty list, later versions by no list. From
version 12 on a topic may be asked for by its id. Nothing is created (`AllowAutoTopicCreation` has
no effect): a topic that doesn't exist is answered with UNKNOWN_TOPIC_OR_PARTITION, an id with
UNKNOWN_TOPIC_ID. A list of all topics has those that the client may describe. Any other topic that
it names is answered with TOPIC_AUTHORIZATION_FAILED, whether it exists or not.

While the agent's lease is over, the answer has no brokers and no partitions, and each topic that
was asked for has LEADER_NOT_AVAILABLE. A Kafka broker that has just started says the same. Clients
ignore an answer without brokers: they keep what they know and ask again, also other brokers.
"""

import re
from collections.abc import Generator, Iterable, Iterator
from typing import Final, NamedTuple

from controller.access.asker_rights import AskerRights
from kafka_listener.asking.failures import failure
from kafka_listener.asking.in_steps import chosen, distinct, each
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Fields, KafkaFailure, KafkaRequest
from kafka_listener.clients.alive_brokers import NOBODY, AliveBrokers
from kafka_listener.clients.allowed_operations import on_cluster, on_topic
from kafka_listener.clients.image_source import ImageSource
from kafka_listener.clients.partitions import PartitionFields
from kafka_listener.clients.sliced_answers import Making, SlicedAnswers
from kafka_listener.wire.body_parts import Parts
from kafka_listener.wire.messages import encode_response_in_steps
from metadata.image import MetadataImage
from metadata.internal_topics import INTERNAL_TOPICS
from metadata.records import AclOperation, AclResourceType
from metadata.steps import finished

METADATA: Final = 3
NO_ID: Final = bytes(16)
_BY_ID_SINCE: Final = 12
_CLUSTER_OPERATIONS: Final = range(8, 11)
"""The versions that say what a client may do with the cluster."""
_LISTENER_ERROR_SINCE: Final = 6
_SHARED_MAX: Final = 1_000
"""A request for more topics gets an answer of its own: comparing such lists takes long."""
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class WantedTopic(NamedTuple):
    """A topic of the request: by its name, or by its id."""

    name: str | None
    topic_id: bytes


class _Wanted(NamedTuple):
    """What a request asks for. Equal ones get equal answers from one image."""

    version: int
    listener: str
    topics: tuple[WantedTopic, ...] | None
    """None: all."""
    cluster_operations: bool
    topic_operations: bool
    client: tuple[str, str] | None
    """Whose rights count; None: those who may do everything."""


class MetadataAnswers:
    """Answers Metadata from an image."""

    def __init__(self, source: ImageSource, answers: SlicedAnswers) -> None:
        self._source = source
        self._answers = answers

    def answer(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer one request. Raises KafkaFailure."""
        listed = request.fields["Topics"]
        if listed is not None and len(listed) > _SHARED_MAX:
            self._answers.make(self._alone(request), lambda body: self._give(request, answer, body))
            return
        rights = self._source.rights(request)
        wanted = finished(_wanted(request, rights))
        if self._source.refusal():
            answer(_not_now(self._source, request))
            return
        image = self._source.image
        self._answers.give(
            image,
            wanted,
            lambda: _made(self._source, image, wanted, rights),
            lambda body: self._give(request, answer, body),
        )

    def _alone(self, request: KafkaRequest) -> Making:
        """Make an answer that nobody shares. Raises KafkaFailure."""
        rights = self._source.rights(request)
        wanted = yield from _wanted(request, rights)
        return (yield from _made(self._source, self._source.image, wanted, rights))

    def _give(self, request: KafkaRequest, answer: Answer, body: Parts | Exception) -> None:
        if isinstance(body, KafkaFailure):
            why, key, version = body.message, request.api_key, request.version
            answer(failure(key, version, request.fields, body.code, why))
        # A long answer takes many slices, and the lease may have ended meanwhile.
        elif isinstance(body, Exception) or self._source.refusal():
            answer(_not_now(self._source, request))
        else:
            answer(body)


def topic_name_code(name: str) -> KafkaCode:
    """Return why there is no topic of this name: unknown, or not a name at all."""
    if _TOPIC_NAME.fullmatch(name) is None or name in {".", ".."}:
        return KafkaCode.INVALID_TOPIC_EXCEPTION
    return KafkaCode.UNKNOWN_TOPIC_OR_PARTITION


def _wanted(request: KafkaRequest, rights: AskerRights | None) -> Generator[None, None, _Wanted]:
    """Read a request, with pauses. Raises KafkaFailure."""
    listed, version = request.fields["Topics"], request.version
    topics: tuple[WantedTopic, ...] | None = None
    if listed is not None and (listed or version > 0):
        found = yield from each(lambda one: _wanted_topic(one, version), listed)
        topics = tuple(dict.fromkeys(found))
    return _Wanted(
        version,
        request.listener,
        topics,
        version in _CLUSTER_OPERATIONS
        and bool(request.fields.get("IncludeClusterAuthorizedOperations")),
        bool(request.fields.get("IncludeTopicAuthorizedOperations")),
        None if rights is None else rights.key,
    )


def _wanted_topic(listed: Fields, version: int) -> WantedTopic:
    """Return one topic of a request. Raises KafkaFailure.

    A topic with an id is asked for by the id; Java's client sends an empty name beside it.
    """
    name, topic_id = listed["Name"], listed.get("TopicId", NO_ID)
    if version < _BY_ID_SINCE and (name is None or topic_id != NO_ID):
        raise KafkaFailure(
            KafkaCode.INVALID_REQUEST,
            f"Metadata version {version} names topics by their names; ids need version 12",
        )
    if name is None and topic_id == NO_ID:
        raise KafkaFailure(KafkaCode.INVALID_REQUEST, "a topic has neither a name nor an id")
    return WantedTopic(name if topic_id == NO_ID else None, topic_id)


def _made(
    source: ImageSource, image: MetadataImage, wanted: _Wanted, rights: AskerRights | None
) -> Making:
    alive = AliveBrokers(image, wanted.listener)
    names = image.topics.names
    shown: Iterable[str] = names
    if wanted.topics is None and rights is not None:
        # Before the answer is encoded: there may be very many that the client may not see.
        shown = yield from chosen(lambda name: _may_describe(rights, name), names)
    response: Fields = {
        "Brokers": (
            {"NodeId": one["BrokerId"], **{key: one[key] for key in ("Host", "Port", "Rack")}}
            for one in alive.described()
        ),
        "ClusterId": source.cluster_id,
        "ControllerId": alive.controller_for(source.node_id),
        "Topics": _topics(image, alive, wanted, shown, rights),
    }
    if wanted.cluster_operations:
        response["ClusterAuthorizedOperations"] = on_cluster(rights)
    return (yield from encode_response_in_steps(METADATA, wanted.version, response))


def _may_describe(rights: AskerRights | None, name: str) -> bool:
    kind = AclResourceType.TOPIC
    return rights is None or rights.may(AclOperation.DESCRIBE, kind, name)


def _topics(
    image: MetadataImage,
    alive: AliveBrokers,
    wanted: _Wanted,
    shown: Iterable[str],
    rights: AskerRights | None,
) -> Iterator[Fields]:
    describe = PartitionFields(
        alive,
        names_listener=wanted.version >= _LISTENER_ERROR_SINCE,
        only_alive=wanted.version == 0,
    )
    for name, topic_id, code in _found(image, wanted, shown, rights):
        fields: Fields = {"ErrorCode": int(code), "Name": name, "TopicId": topic_id}
        if code is KafkaCode.NONE:
            fields["IsInternal"] = name in INTERNAL_TOPICS
            if wanted.topic_operations and name is not None:
                fields["TopicAuthorizedOperations"] = on_topic(rights, name)
        refused = code is KafkaCode.TOPIC_AUTHORIZATION_FAILED
        partitions = () if refused else image.topics.partitions_of(topic_id)
        fields["Partitions"] = (describe.of(*one) for one in partitions)
        yield fields


def _found(
    image: MetadataImage,
    wanted: _Wanted,
    shown: Iterable[str],
    rights: AskerRights | None,
) -> Iterator[tuple[str | None, bytes, KafkaCode]]:
    """Yield name, id and error of each topic that was asked for."""
    if wanted.topics is None:
        for known in shown:
            yield known, image.topics.by_name[known], KafkaCode.NONE
        return
    for name, topic_id in wanted.topics:
        if name is None:
            topic = image.topics.by_id.get(topic_id)
            if topic is not None and not _may_describe(rights, topic.name):
                # The client knows the id already, and does not learn the name.
                yield None, topic_id, KafkaCode.TOPIC_AUTHORIZATION_FAILED
                continue
            code = KafkaCode.UNKNOWN_TOPIC_ID if topic is None else KafkaCode.NONE
            yield None if topic is None else topic.name, topic_id, code
        elif not _may_describe(rights, name):
            yield name, NO_ID, KafkaCode.TOPIC_AUTHORIZATION_FAILED
        else:
            found = image.topics.by_name.get(name)
            code = topic_name_code(name) if found is None else KafkaCode.NONE
            yield name, found or NO_ID, code


def _not_now(source: ImageSource, request: KafkaRequest) -> Fields:
    """Return the answer of a broker that must not say what it knows."""
    listed = request.fields["Topics"] or ()
    wanted = distinct(_wanted_topic(one, request.version) for one in listed)
    return {
        "Brokers": [],
        "ClusterId": source.cluster_id,
        "ControllerId": NOBODY,
        "Topics": (
            {
                "ErrorCode": int(KafkaCode.LEADER_NOT_AVAILABLE),
                "Name": topic.name,
                "TopicId": topic.topic_id,
                "Partitions": [],
            }
            for topic in wanted
        ),
    }
