"""Answers requests that read the state.

Every answer has the offset and epoch of the image that it was read from. An answer that may be old
has its age too.
"""

from bisect import bisect_right
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from controller.http.describe import (
    brokers_of,
    describe_broker,
    describe_partitions,
    describe_topic,
    readable_offset,
    summarize_topic,
    topic_names,
)
from controller.http.describe_features import (
    describe_features,
    describe_node,
    nodes_of,
    why_no_levels,
)
from controller.http.node_view import NodeView, View
from controller.http.pages import Pages
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    DescribeBrokerReply,
    DescribeTopicsReply,
    ListBrokersReply,
    ListFeaturesReply,
    ListTopicsReply,
)
from metadata.messages.parts import LongMessage
from runtime.http.requests import Request

TOPICS_LISTED_MAX = 1_000
BROKERS_LISTED_MAX = 1_000
PARTITIONS_LISTED_MAX = 10_000
"""The most entries of a page. If no page is asked for, all brokers or partitions are listed."""
T = TypeVar("T")
OnAnswer = Callable[[msgspec.Struct | LongMessage | LogbergError], None]


class Queries:
    """Picks an image that is new enough for a request, and answers from it."""

    def __init__(self, node: NodeView, pages: Pages) -> None:
        self.pages = pages
        self._reads = node.replica.reads
        self._replica = node.replica
        self._view = node.read
        self._view_now = node.read_now
        self._not_here = node.not_here
        self._proposer = node.leader.proposer

    def read(
        self,
        request: Request,
        answer: Callable[[View], msgspec.Struct | LongMessage],
        on_answer: OnAnswer,
    ) -> None:
        """Call `answer` with an image that is new enough, and send what it returns."""
        self.read_either(request, answer, on_answer)

    def read_in_steps(
        self,
        request: Request,
        answer: Callable[[View], Generator[None, None, LongMessage]],
        on_answer: Callable[[Generator[None, None, LongMessage] | LogbergError], None],
    ) -> None:
        """Do the same for an answer that is found in steps. It raises its errors at once."""
        self.read_either(request, answer, on_answer)

    def read_either(
        self,
        request: Request,
        answer: Callable[[View], T],
        on_answer: Callable[[T | LogbergError], None],
    ) -> None:
        """Do the same for an answer of any form."""

        def answer_now(view: View) -> None:
            try:
                on_answer(answer(view))
            except LogbergError as error:
                on_answer(error)

        try:
            consistency, min_offset = _wanted(request.query)
            going_on = self.pages.image_for(request.query, self._replica.image)
        except LogbergError as error:
            on_answer(error)
            return
        if going_on is not None:
            # The image was new enough when the first page was read.
            view = self._view()
            age_ms = view.age_ms if going_on is view.image else None
            answer_now(View(going_on, view.heard, age_ms))
        elif min_offset is not None:
            self._at_least(
                min_offset,
                lambda why: answer_now(self._view()) if why is None else on_answer(why),
            )
        elif consistency == "stale":
            answer_now(self._view())
        else:
            self._reads.linearizable(
                lambda ok: answer_now(self._view_now()) if ok else on_answer(self._not_here())
            )

    def _at_least(self, offset: int, on_ready: Callable[[LogbergError | None], None]) -> None:
        """Wait for an offset. The active controller knows whether it can come soon."""
        pending = self._proposer.pending

        def wait() -> None:
            self._reads.at_least(offset, lambda ok: on_ready(None if ok else behind(offset)))

        if pending is None or offset <= pending.mark.log_end:
            wait()
            return

        def confirmed(leads: bool) -> None:
            end = pending.mark.log_end
            if leads and offset > end:
                on_ready(_beyond(offset, end))
            else:
                wait()

        self._reads.linearizable(confirmed)


def list_topics(view: View, query: Mapping[str, str], pages: Pages) -> LongMessage:
    """`GET /v1/topics`. Raises LogbergError."""
    limit = limit_of(query, TOPICS_LISTED_MAX)
    after = pages.last(query, "topics", str) or query.get("after", "")
    names, more = topic_names(view.image, after, limit or TOPICS_LISTED_MAX)
    head = ListTopicsReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        age_ms=view.age_ms,
        topics=(),
        next_after=more,
        continuation=None if more is None else pages.token(view.image, "topics", more),
    )
    topics = (summarize_topic(view.image, name) for name in names)
    return LongMessage(head, "topics", topics, len(names))


def one_topic(view: View, name: str, query: Mapping[str, str], pages: Pages) -> LongMessage:
    """`GET /v1/topics/{name}`. Raises LogbergError."""
    topic = view.image.topics.named(name)
    if topic is None:
        raise LogbergError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic named {name[:300]!r}"
        )
    image, of = view.image, f"partitions of {topic.topic_id.hex()}"
    numbers, more = _page(
        image.topics.ids_of(topic.topic_id),
        pages.last(query, of, int),
        limit_of(query, PARTITIONS_LISTED_MAX),
    )
    head = DescribeTopicsReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        age_ms=view.age_ms,
        topics=(describe_topic(image, topic),),
        continuation=None if more is None else pages.token(image, of, more),
    )
    partitions = describe_partitions(image, topic, numbers)
    return LongMessage(head, "partitions", partitions, len(numbers))


def list_brokers(view: View, query: Mapping[str, str], pages: Pages) -> LongMessage:
    """`GET /v1/brokers`. Raises LogbergError."""
    image = view.image
    last, limit = pages.last(query, "brokers", int), limit_of(query, BROKERS_LISTED_MAX)
    behind = iter(image.cluster.ids) if last is None else image.cluster.ids.after(last)
    # One more than asked for shows whether there are more.
    found = list(behind if limit is None else islice(behind, limit + 1))
    ids = found[:limit]
    more = ids[-1] if len(ids) < len(found) else None
    head = ListBrokersReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        age_ms=view.age_ms,
        brokers=(),
        continuation=None if more is None else pages.token(image, "brokers", more),
    )
    return LongMessage(head, "brokers", brokers_of(image, view.heard, ids), len(ids))


def list_features(view: View, voters: Sequence[int]) -> LongMessage:
    """`GET /v1/features`."""
    head = ListFeaturesReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        features=describe_features(view.image),
        nodes=(),
        note=why_no_levels(view.image, voters),
        age_ms=view.age_ms,
    )
    nodes = nodes_of(view.image, voters)
    # There may be ten thousand brokers: each is described when its part of the answer is sent.
    return LongMessage(
        head, "nodes", (describe_node(view.image, *node) for node in nodes), len(nodes)
    )


def one_broker(view: View, text: str) -> DescribeBrokerReply:
    """`GET /v1/brokers/{id}`. Raises LogbergError."""
    broker = view.image.cluster.brokers.get(broker_id_of(text))
    if broker is None:
        raise LogbergError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {text[:20]}")
    return DescribeBrokerReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        age_ms=view.age_ms,
        broker=describe_broker(view.image, broker, view.heard),
    )


def _page(
    keys: Sequence[int], last: int | None, limit: int | None
) -> tuple[Sequence[int], int | None]:
    """Return the keys behind `last`, at most `limit`, and the last of them if there are more."""
    start = 0 if last is None else bisect_right(keys, last)
    end = len(keys) if limit is None else min(len(keys), start + limit)
    return keys[start:end], keys[end - 1] if start < end < len(keys) else None


def limit_of(query: Mapping[str, str], most: int) -> int | None:
    """Return how many entries a request asks for; None if it doesn't say. Raises LogbergError."""
    if "limit" not in query:
        return None
    limit = whole_number(query, "limit", most)
    if limit < 1:
        raise LogbergError(ErrorCode.INVALID_REQUEST, "limit: give 1 or more")
    return min(limit, most)


def broker_id_of(text: str) -> int:
    """Parse a broker id in a path. Raises LogbergError."""
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        raise LogbergError(ErrorCode.INVALID_REQUEST, f"{text[:50]!r} is not a broker id")
    return int(text)


def whole_number(query: Mapping[str, str], name: str, default: int) -> int:
    """Parse a number of 0 or more in a query. Raises LogbergError."""
    text = query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"{name}: {text[:50]!r} is not a whole number"
        )
    return int(text)


def yes_or_no(query: Mapping[str, str], name: str) -> bool:
    """Parse a flag in a query. Raises LogbergError."""
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise LogbergError(ErrorCode.INVALID_REQUEST, f"{name}: {text[:50]!r}; give true or false")
    return text == "true"


def _wanted(query: Mapping[str, str]) -> tuple[str, int | None]:
    consistency = query.get("consistency", "linearizable")
    if consistency not in ("linearizable", "stale"):
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"consistency: {consistency[:50]!r}; give linearizable or stale",
        )
    min_offset = whole_number(query, "minOffset", 0) if "minOffset" in query else None
    return consistency, min_offset


def _beyond(offset: int, end: int) -> LogbergError:
    return LogbergError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"minOffset: {offset} is beyond {end}, the end of the log; give an offset that an answer "
        "named",
        {"field": "minOffset"},
    )


def behind(offset: int) -> LogbergError:
    """Return the error of a node that has not reached the offset that a request names."""
    return LogbergError(
        ErrorCode.OFFSET_NOT_AVAILABLE,
        f"this controller has not applied everything before offset {offset} yet",
    )
