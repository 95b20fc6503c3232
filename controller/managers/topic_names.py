"""Finds the topics that a request names."""

from collections import Counter

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.records import TopicRecord
from metadata.uuids import parse_uuid_of


def check_once(times: Counter[str], topic: str) -> None:
    """Raise LogbergError INVALID_REQUEST if a topic is named twice."""
    if times[topic] > 1:
        raise LogbergError(ErrorCode.INVALID_REQUEST, f"topic {topic!r} is in the request twice")


def known_topic(image: MetadataImage, text: str, *, by_id: bool) -> TopicRecord:
    """Return a topic by name or id. Raises LogbergError UNKNOWN_TOPIC_…."""
    if by_id:
        topic = image.topics.by_id.get(parse_uuid_of("topicIds", text))
        if topic is None:
            raise LogbergError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {text}")
        return topic
    topic = image.topics.named(text)
    if topic is None:
        raise LogbergError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic named {text[:300]!r}"
        )
    return topic
