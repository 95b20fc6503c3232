"""Answers DescribeTopicPartitions (api key 75): topics in pages, with ELR (KIP-966).

Rules, as in Kafka: topics come in the order of their names, however the client listed them. Without
a list it is all topics. A page has at most 2,000 partitions, or fewer if the client says so. The
cursor says where the next page begins: a topic, and the number of its next partition. A list of
all topics has those that the client may describe. Any other topic that it names is answered with
TOPIC_AUTHORIZATION_FAILED, whether it exists or not.
"""

from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator
from heapq import merge
from itertools import chain
from typing import Final

from controller.access.asker_rights import AskerRights
from kafka_listener.asking.in_steps import STEP, distinct
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Fields, KafkaFailure, KafkaRequest
from kafka_listener.clients.alive_brokers import AliveBrokers
from kafka_listener.clients.allowed_operations import on_topic
from kafka_listener.clients.image_source import ImageSource
from kafka_listener.clients.metadata_answers import NO_ID, topic_name_code
from kafka_listener.clients.partitions import PartitionFields
from kafka_listener.clients.sliced_answers import Making, SlicedAnswers
from kafka_listener.wire.body_parts import Parts
from kafka_listener.wire.messages import encode_response_in_steps
from metadata.image import MetadataImage
from metadata.internal_topics import INTERNAL_TOPICS
from metadata.records import AclOperation, AclResourceType

DESCRIBE_TOPIC_PARTITIONS: Final = 75
PARTITIONS_MAX: Final = 2_000
_SORTED_AT_ONCE: Final = 2_000
"""Names that are sorted between two pauses. The sorted runs are merged as they are read."""


class TopicPartitionPages:
    """Answers DescribeTopicPartitions from an image."""

    def __init__(self, source: ImageSource, answers: SlicedAnswers) -> None:
        self._source = source
        self._answers = answers

    def answer(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer one request. Raises KafkaFailure."""
        page = _Page(self._source.image, request, self._source.rights(request))
        if self._source.refusal():
            answer(page.not_now())
            return

        def on_made(body: Parts | Exception) -> None:
            if isinstance(body, Exception) or self._source.refusal():
                answer(page.not_now())
            else:
                answer(body)

        self._answers.make(page.made(), on_made)


class _Page:
    """One page of topics."""

    def __init__(
        self, image: MetadataImage, request: KafkaRequest, rights: AskerRights | None
    ) -> None:
        fields = request.fields
        self._rights = rights
        self._topics = image.topics
        self._version = request.version
        self._describe = PartitionFields(AliveBrokers(image, request.listener))
        self._listed: list[Fields] = fields["Topics"]
        self._limit = min(PARTITIONS_MAX, fields.get("ResponsePartitionLimit", PARTITIONS_MAX))
        cursor = fields.get("Cursor") or {"TopicName": "", "PartitionIndex": 0}
        self._from: str = cursor["TopicName"]
        self._from_partition: int = cursor["PartitionIndex"]
        if self._limit < 1 or self._from_partition < 0:
            raise KafkaFailure(
                KafkaCode.INVALID_REQUEST,
                "ResponsePartitionLimit is 1 or more, and a cursor's PartitionIndex 0 or more",
            )

    def not_now(self) -> Fields:
        """Return the answer of a broker that must not say what it knows."""
        code = int(KafkaCode.LEADER_NOT_AVAILABLE)
        names = distinct(topic["Name"] for topic in self._listed)
        return {"Topics": ({"ErrorCode": code, "Name": name} for name in names)}

    def made(self) -> Making:
        """Make the page in steps."""
        topics: list[Fields] = []
        response: Fields = {"Topics": topics}
        left = self._limit
        names = yield from self._names()
        for count, name in enumerate(names):
            if not count % STEP:
                yield
            if not self._may_describe(name):
                if self._listed:
                    topics.append(_refused(name))
                continue
            if left == 0:
                response["NextCursor"] = {"TopicName": name, "PartitionIndex": 0}
                break
            topic_id = self._topics.by_name.get(name)
            if topic_id is None:
                topics.append(_unknown(name))
                continue
            ids = self._topics.ids_of(topic_id)
            start = bisect_left(ids, self._from_partition) if name == self._from else 0
            shown = ids[start : start + left]
            topics.append(self._topic(name, topic_id, shown))
            left -= len(shown)
            if start + len(shown) < len(ids):
                following = ids[start + len(shown)]
                response["NextCursor"] = {"TopicName": name, "PartitionIndex": following}
                break
        return (
            yield from encode_response_in_steps(DESCRIBE_TOPIC_PARTITIONS, self._version, response)
        )

    def _names(self) -> Generator[None, None, Iterable[str]]:
        """Return the names from the cursor on, in their order, each once."""
        if self._listed:
            return distinct((yield from self._sorted_names()))
        if not self._from:
            return self._topics.names
        first = (self._from,) if self._from in self._topics.by_name else ()
        return chain(first, self._topics.names.after(self._from))

    def _sorted_names(self) -> Generator[None, None, Iterator[str]]:
        runs = []
        for start in range(0, len(self._listed), _SORTED_AT_ONCE):
            some = self._listed[start : start + _SORTED_AT_ONCE]
            names = (topic["Name"] for topic in some)
            runs.append(sorted(name for name in names if name >= self._from))
            yield
        return merge(*runs)

    def _may_describe(self, name: str) -> bool:
        kind, rights = AclResourceType.TOPIC, self._rights
        return rights is None or rights.may(AclOperation.DESCRIBE, kind, name)

    def _topic(self, name: str, topic_id: bytes, shown: Iterable[int]) -> Fields:
        return {
            "Name": name,
            "TopicId": topic_id,
            "IsInternal": name in INTERNAL_TOPICS,
            "TopicAuthorizedOperations": on_topic(self._rights, name),
            "Partitions": self._partitions(topic_id, tuple(shown)),
        }

    def _partitions(self, topic_id: bytes, numbers: Iterable[int]) -> Iterator[Fields]:
        for number in numbers:
            partition = self._topics.partitions[topic_id, number]
            yield {
                **self._describe.of(number, partition),
                "EligibleLeaderReplicas": list(partition.elr),
                "LastKnownElr": list(partition.last_known_elr),
            }


def _refused(name: str) -> Fields:
    code = int(KafkaCode.TOPIC_AUTHORIZATION_FAILED)
    return {"ErrorCode": code, "Name": name, "TopicId": NO_ID}


def _unknown(name: str) -> Fields:
    return {"ErrorCode": int(topic_name_code(name)), "Name": name, "TopicId": NO_ID}
