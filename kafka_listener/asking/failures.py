"""Where each of Kafka's responses has its place for an error.

Most responses have an error at the top. Others have only one for each topic or resource of the
request; then the failure of the whole request stands at each of them. `_PLACES` says which, by api
key.

Rule: a failure answers in the response's own form, so that a client reads it in every version. Its
lists are iterables that read the request while the response is encoded: there may be very many
entries.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from kafka_listener.asking.in_steps import distinct
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields

_NO_ID: Final = bytes(16)
_Error = dict[str, int | str]
_Items = Callable[[Fields, Callable[[], _Error]], Iterator[Fields]]


class _Place(NamedTuple):
    """Where one response has its errors."""

    top: bool = True
    """It has an ErrorCode at the top."""
    message: bool = False
    """An ErrorMessage stands beside each ErrorCode."""
    items: str = ""
    """The list whose entries have errors. It is filled if there is no error at the top."""
    each: _Items | None = None
    """Makes that list from the request's fields."""
    top_since: int = 0
    """The first version with an error at the top."""
    top_before: int = 2**15
    """The first version that has none at the top any more."""
    message_since: int = 0


def failure(
    api_key: int, version: int, fields: Fields, code: KafkaCode, message: str, throttle_ms: int = 0
) -> Fields:
    """Return the response that says: this request failed as a whole.

    `fields` are those of the request. `throttle_ms`: after how many ms to ask again.
    """
    place = _PLACES.get(api_key, _Place())
    has_message = place.message and version >= place.message_since

    def error() -> _Error:
        found: _Error = {"ErrorCode": int(code)}
        if has_message:
            found["ErrorMessage"] = message
        return found

    response: Fields = {"ThrottleTimeMs": throttle_ms} if throttle_ms else {}
    if place.top and place.top_since <= version < place.top_before:
        response |= error()
    elif place.each is not None:
        response[place.items] = place.each(fields, error)
    return response


def _of(name: str, *keys: str) -> _Items:
    """Entries of the request's list `name`, which keep these fields."""

    def each(fields: Fields, error: Callable[[], _Error]) -> Iterator[Fields]:
        return (
            {**{key: entry[key] for key in keys if key in entry}, **error()}
            for entry in fields.get(name) or ()
        )

    return each


def _deleted_topics(fields: Fields, error: Callable[[], _Error]) -> Iterator[Fields]:
    names: Iterable[str] = fields.get("TopicNames") or ()
    return chain(
        ({"Name": name, **error()} for name in names),
        _of("Topics", "Name", "TopicId")(fields, error),
    )


def _partitions_of(
    name: str, topic_key: str, answer_key: str, partitions: str, number: str
) -> _Items:
    """Topics with partitions in the answer, for topics with plain partition numbers."""

    def each(fields: Fields, error: Callable[[], _Error]) -> Iterator[Fields]:
        return (
            {
                topic_key: topic[topic_key],
                answer_key: ({number: index, **error()} for index in topic[partitions]),
            }
            for topic in fields.get(name) or ()
        )

    return each


def _altered_users(fields: Fields, error: Callable[[], _Error]) -> Iterator[Fields]:
    entries = chain(fields.get("Deletions") or (), fields.get("Upsertions") or ())
    return ({"User": name, **error()} for name in distinct(entry["Name"] for entry in entries))


def _altered_quotas(fields: Fields, error: Callable[[], _Error]) -> Iterator[Fields]:
    return (
        {"Entity": map(dict, entry["Entity"]), **error()} for entry in fields.get("Entries") or ()
    )


def _asked_topics(fields: Fields, error: Callable[[], _Error]) -> Iterator[Fields]:
    """Topics of Metadata. Not every version that may ask without a name can answer without one."""
    return (
        {"Name": topic["Name"] or "", "TopicId": topic.get("TopicId", _NO_ID), **error()}
        for topic in fields.get("Topics") or ()
    )


def _coordinators(fields: Fields, error: Callable[[], _Error]) -> Iterator[Fields]:
    return ({"Key": key, **error()} for key in fields.get("CoordinatorKeys") or ())


_TOPICS: Final = _of("Topics", "Name")
_RESOURCES: Final = _of("Resources", "ResourceType", "ResourceName")
_TOP_WITH_MESSAGE: Final = _Place(message=True)
_PLACES: Final[Mapping[int, _Place]] = MappingProxyType(
    {
        3: _Place(top_since=13, items="Topics", each=_asked_topics),
        10: _Place(
            message=True, message_since=1, top_before=4, items="Coordinators", each=_coordinators
        ),
        19: _Place(top=False, message=True, message_since=1, items="Topics", each=_TOPICS),
        20: _Place(
            top=False, message=True, message_since=5, items="Responses", each=_deleted_topics
        ),
        29: _TOP_WITH_MESSAGE,
        30: _Place(top=False, message=True, items="Results", each=_of("Creations")),
        31: _Place(top=False, message=True, items="FilterResults", each=_of("Filters")),
        32: _Place(top=False, message=True, items="Results", each=_RESOURCES),
        33: _Place(top=False, message=True, items="Responses", each=_RESOURCES),
        35: _Place(top_since=3),
        36: _TOP_WITH_MESSAGE,
        37: _Place(top=False, message=True, items="Results", each=_TOPICS),
        43: _Place(
            top_since=1,
            items="ReplicaElectionResults",
            each=_partitions_of(
                "TopicPartitions", "Topic", "PartitionResult", "Partitions", "PartitionId"
            ),
        ),
        44: _Place(top=False, message=True, items="Responses", each=_RESOURCES),
        45: _TOP_WITH_MESSAGE,
        46: _TOP_WITH_MESSAGE,
        48: _TOP_WITH_MESSAGE,
        49: _Place(top=False, message=True, items="Entries", each=_altered_quotas),
        50: _TOP_WITH_MESSAGE,
        51: _Place(top=False, message=True, items="Results", each=_altered_users),
        55: _Place(message=True, message_since=2),
        57: _TOP_WITH_MESSAGE,
        60: _TOP_WITH_MESSAGE,
        64: _TOP_WITH_MESSAGE,
        75: _Place(top=False, items="Topics", each=_TOPICS),
        80: _TOP_WITH_MESSAGE,
        81: _TOP_WITH_MESSAGE,
    }
)
"""By api key. A response that is not here has one ErrorCode at the top, without a message."""
