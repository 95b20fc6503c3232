"""Lists partitions by topic and number, all of them or those that a question is about.

The cost of a page is bounded: it ends when it has enough entries, or when it has looked at enough
topics and partitions. Then it may have few entries or none, and its token says where to go on. If
few topics have what is asked for, only these are looked at.
"""

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from controller.access.listing import ListFilter
from controller.http.clients.asked import Asked, ReadContext
from controller.http.describe import describe_partition, readable_offset
from controller.http.node_view import View
from controller.http.pages import Pages
from controller.http.queries import limit_of, yes_or_no
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition, Topic
from metadata.image.topics import NOTHING, Lacks, PartitionIds
from metadata.messages import (
    ListedPartition,
    ListPartitionsReply,
    ListReassignmentsReply,
    RunningReassignment,
)
from metadata.messages.parts import LongMessage
from metadata.records import AclResourceType

LISTED_MAX: Final = 1_000
"""The most entries of a page, and the default."""
LOOKED_AT_MAX: Final = 20_000
"""Topics and partitions that are looked at for one page."""
_FEW: Final = 1_000
"""So many topics that have what is asked for are sorted by name."""
_STEP: Final = 256
_HIDDEN_STEP: Final = 64
"""Topics that are not shown, between two yields. A look-up costs by the name's length."""

Place = tuple[str, int]
"""A topic's name and a partition's number."""
Steps = Generator[None, None, LongMessage]


class PartitionFilter(NamedTuple):
    """Which partitions a list is about."""

    topic: str | None = None
    leaderless: bool = False
    under_replicated: bool = False
    moving: bool = False

    @property
    def some(self) -> bool:
        """Only partitions that lack something, or that are being reassigned."""
        return self.leaderless or self.under_replicated or self.moving

    def may_be_in(self, lacks: Lacks) -> bool:
        """Return whether a topic of which this is known has such partitions."""
        return (
            (not self.leaderless or lacks.leader > 0)
            and (not self.under_replicated or lacks.in_sync > 0)
            and (not self.moving or lacks.moving > 0)
        )

    def fits(self, partition: Partition) -> bool:
        """Return whether a partition is asked for."""
        return (
            (not self.leaderless or partition.leader < 0)
            and (not self.under_replicated or len(partition.isr) < len(partition.replicas))
            and (not self.moving or partition.moving)
        )


def list_partitions(view: View, asked: Asked, context: ReadContext) -> Steps:
    """`GET /v1/partitions`. Raises LogbergError."""
    query, pages = asked.request.query, context.pages
    wanted = PartitionFilter(
        query.get("topic"),
        yes_or_no(query, "leaderless"),
        yes_or_no(query, "underReplicated"),
        yes_or_no(query, "reassigning"),
    )
    image = view.image
    head = ListPartitionsReply(
        offset=readable_offset(image), epoch=image.epoch, age_ms=view.age_ms, partitions=()
    )
    return _listed(image, head, wanted, asked, pages, _listed_partition)


def list_reassignments(view: View, asked: Asked, context: ReadContext) -> Steps:
    """`GET /v1/reassignments`. Raises LogbergError."""
    query, pages = asked.request.query, context.pages
    wanted = PartitionFilter(query.get("topic"), moving=True)
    image = view.image
    head = ListReassignmentsReply(
        offset=readable_offset(image), epoch=image.epoch, age_ms=view.age_ms, partitions=()
    )
    return _listed(image, head, wanted, asked, pages, _running)


def _listed(
    image: MetadataImage,
    head: ListPartitionsReply | ListReassignmentsReply,
    wanted: PartitionFilter,
    asked: Asked,
    pages: Pages,
    describe: Callable[[MetadataImage, Place, Partition], msgspec.Struct],
) -> Steps:
    """Check the question now, and return the steps that answer it. Raises LogbergError."""
    if wanted.topic is not None and image.topics.named(wanted.topic) is None:
        raise LogbergError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no topic named {wanted.topic[:300]!r}",
        )
    query, shown = asked.request.query, asked.shown()
    of = "partitions " + "".join("fu"[int(value)] for value in wanted[1:]) + (wanted.topic or "")
    last = _place(pages.last(query, of, str))
    limit = limit_of(query, LISTED_MAX) or LISTED_MAX

    def steps() -> Steps:
        found: list[Place] = []
        more = yield from _look(image, wanted, last, limit, found, shown)
        token = None if more is None else pages.token(image, of, f"{more[0]}/{more[1]}")
        by_name, partitions = image.topics.by_name, image.topics.partitions
        entries = (
            describe(image, place, partitions[by_name[place[0]], place[1]]) for place in found
        )
        reply = msgspec.structs.replace(head, continuation=token)
        return LongMessage(reply, "partitions", entries, len(found))

    return steps()


def _look(
    image: MetadataImage,
    wanted: PartitionFilter,
    last: Place | None,
    limit: int,
    found: list[Place],
    shown: ListFilter | None,
) -> Generator[None, None, Place | None]:
    """Collect places behind `last`. Returns the place to go on behind; None at the end.

    Topics that `shown` hides don't count as looked at: no page would end at them.
    """
    topics, looked_at, hidden = image.topics, 0, 0
    place = last
    for name in _names(image, wanted, last):
        if shown is not None and not shown.shows(AclResourceType.TOPIC, name):
            hidden += 1
            if hidden % _HIDDEN_STEP == 0:
                yield
            continue
        topic_id = topics.by_name[name]
        looked_at += 1
        if wanted.some and not wanted.may_be_in(topics.lacks.get(topic_id, NOTHING)):
            numbers: Sequence[int] = ()
        else:
            numbers = _behind(topics.ids_of(topic_id), last, name)
        if looked_at > LOOKED_AT_MAX:
            return place
        if looked_at % _STEP == 0:
            yield
        for number in numbers:
            if len(found) == limit or looked_at > LOOKED_AT_MAX:
                return place
            if not wanted.some or wanted.fits(topics.partitions[topic_id, number]):
                found.append((name, number))
            place = (name, number)
            looked_at += 1
            if looked_at % _STEP == 0:
                yield
        if not numbers:
            # Nothing behind this name is left out by going on behind its highest number.
            place = (name, _HIGHEST)
    return None


_HIGHEST: Final = 2**31 - 1


def _names(image: MetadataImage, wanted: PartitionFilter, last: Place | None) -> Iterator[str]:
    """Yield the topics that may have such partitions, from that of `last` on, by name."""
    if wanted.topic is not None:
        return iter((wanted.topic,))
    topics = image.topics
    if wanted.some and len(topics.lacks) <= _FEW:
        known = (topics.by_id[topic_id].name for topic_id, _ in topics.lacks.unordered_items())
        return iter(sorted(name for name in known if last is None or name >= last[0]))
    if last is None:
        return iter(topics.names)
    here = (last[0],) if topics.named(last[0]) is not None else ()
    return chain(here, topics.names.after(last[0]))


def _behind(numbers: PartitionIds, last: Place | None, name: str) -> Sequence[int]:
    if last is None or last[0] != name:
        return numbers
    return numbers[bisect_right(numbers, last[1]) :]


def _place(text: str | None) -> Place | None:
    """Read the last key of a token. Raises LogbergError."""
    if text is None:
        return None
    name, _, number = text.rpartition("/")
    if not number.isdecimal():
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, "continuation: the token belongs to another list"
        )
    return name, int(number)


def _listed_partition(image: MetadataImage, place: Place, partition: Partition) -> msgspec.Struct:
    described = describe_partition(image, place[1], partition)
    fields = {name: getattr(described, name) for name in described.__struct_fields__}
    return ListedPartition(topic=place[0], **fields)


def _running(_image: MetadataImage, place: Place, partition: Partition) -> msgspec.Struct:
    stay = [replica for replica in partition.replicas if replica not in partition.removing]
    return RunningReassignment(
        topic=place[0],
        partition=place[1],
        replicas=partition.replicas,
        adding_replicas=partition.adding,
        removing_replicas=partition.removing,
        isr=partition.isr,
        waiting_for=tuple(replica for replica in stay if replica not in partition.isr),
    )


def known_partition(image: MetadataImage, name: str, number: int) -> tuple[Topic, Partition]:
    """Return a partition by its topic's name. Raises LogbergError."""
    topic = image.topics.named(name)
    partition = None if topic is None else image.topics.partitions.get((topic.topic_id, number))
    if topic is None or partition is None:
        raise LogbergError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no partition {name[:300]}-{number}",
        )
    return topic, partition
