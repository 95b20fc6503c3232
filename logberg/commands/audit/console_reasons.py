"""Why an entry is as it is, for the console: the sentences of `logberg explain`.

Rule: the state comes from the console's index, and the sentences from the questions of `logberg
explain`. So both say the same of a past moment.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from audit.questions.state_words import name_of
from logberg.cli.past_state import ask_image
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.commands.explain_coordination import explain_key, explain_queue, explain_session
from metadata.image import MetadataImage
from metadata.messages.coordination import ResourceKind
from metadata.messages.findings import Explanation
from metadata.records.coordination import resource_word

PARTITIONS_MOST: Final = 1_000
"""So many partitions of a topic are looked at."""

_Found = tuple[Explanation, ...]


def reasons(image: MetadataImage, table: str, name: str) -> _Found:
    """Return why an entry of `audit.index.partial_image.EXPLAINED` is as it is.

    Raises LookupError.
    """
    try:
        return ask_image(image, lambda client: _QUESTIONS[table](client, image, name))
    except ClientError as error:
        raise LookupError(str(error)) from None


async def _broker(client: LogbergClient, _image: MetadataImage, name: str) -> _Found:
    return (await client.explain_broker(int(name))).findings


async def _partition(client: LogbergClient, _image: MetadataImage, name: str) -> _Found:
    topic, _, number = name.rpartition("-")
    return (await client.partition(topic, int(number))).findings


async def _topic(client: LogbergClient, image: MetadataImage, name: str) -> _Found:
    """Say what is wrong with the topic's partitions."""
    topic = image.topics.named(name)
    numbers = [] if topic is None else list(image.topics.ids_of(topic.topic_id))
    found: list[Explanation] = []
    for number in numbers[:PARTITIONS_MOST]:
        said = await client.partition(name, number)
        found += [
            msgspec.structs.replace(one, says=f"{name}-{number}: {one.says}")
            for one in said.findings
        ]
    if len(numbers) > PARTITIONS_MOST:
        says = f"the first {PARTITIONS_MOST:,} of {len(numbers):,} partitions were looked at"
        found.append(Explanation(f"topic:{name}", says))
    return tuple(found)


async def _session(client: LogbergClient, _image: MetadataImage, name: str) -> _Found:
    return (await explain_session(client, name))[0]


async def _entry(client: LogbergClient, image: MetadataImage, name: str) -> _Found:
    """Say who holds the lock, leads the election or is in the group to which the entry belongs."""
    keys = image.coordination.entries
    kind, resource = next(key[:2] for key in keys if name_of("entries", key) == name)
    word = resource_word(kind, resource).partition(":")[0]
    return (await explain_queue(client, msgspec.convert(word, ResourceKind), resource))[0]


async def _key(client: LogbergClient, _image: MetadataImage, name: str) -> _Found:
    return (await explain_key(client, name))[0]


_QUESTIONS: Final[
    Mapping[str, Callable[[LogbergClient, MetadataImage, str], Awaitable[_Found]]]
] = {
    "brokers": _broker,
    "topics": _topic,
    "partitions": _partition,
    "sessions": _session,
    "entries": _entry,
    "keys": _key,
}
