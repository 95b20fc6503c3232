"""What one watch asks for, and the news in its scopes.

A scope is a key, the keys with a prefix, or a group, an election or a lock. News of keys are their
changes, one by one. News of a queue are the queue as it is now.

Rule: an answer has room for so much, whatever it was asked for. The first scope with news is told
in any case. One that doesn't fit any more is postponed: the caller asks for it again.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from controller.config import CoordinationLimits
from controller.http.coordination.describing import describe_key, describe_queue
from controller.http.coordination.feed import CoordinationFeed, FeedChange
from controller.http.coordination.reads import keys_of
from controller.http.describe import readable_offset
from controller.managers.coordination.entries import KINDS
from controller.managers.coordination.limits import check_name
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.coordination import CoordinationImage, CoordinationResource
from metadata.messages import (
    CoordinationWatchReply,
    KeyChangeReply,
    ScopeNews,
    WatchScope,
)
from metadata.messages.parts import LongMessage

SNAPSHOT: Final = "snapshot"
CHANGES: Final = "changes"
RESYNC: Final = "resync"
POSTPONED: Final = "postponed"
QUEUE_AT_ONCE: Final = 256
"""Entries of a queue. What is longer is described and encoded while it is sent."""
News = ScopeNews | LongMessage
SNAPSHOT_KEYS_MAX: Final = 1_000
SNAPSHOT_BYTES_MAX: Final = 1024 * 1024
ANSWER_ITEMS_MAX: Final = 2_000
"""Keys, changes and entries."""
ANSWER_BYTES_MAX: Final = 2 * 1024 * 1024


class AnswerRoom:
    """How much more fits into one answer."""

    def __init__(self) -> None:
        self._items = 0
        self._bytes = 0
        self.full = False

    def take(self, items: int, size: int) -> bool:
        """Use room for the news of a scope, if they fit or are the first ones."""
        first = not self._items
        self._items += max(items, 1)
        self._bytes += size
        self.full = self._items > ANSWER_ITEMS_MAX or self._bytes > ANSWER_BYTES_MAX
        return first or not self.full


class WatchedScope(NamedTuple):
    """One scope of a watch, checked."""

    number: int
    key: str | None
    prefix: str | None
    resource: CoordinationResource | None
    after: int | None
    """None: the present state first."""

    @classmethod
    def read(cls, index: int, scope: WatchScope, limits: CoordinationLimits) -> "WatchedScope":
        """Check a scope. Raises LogbergError."""
        of_resource = scope.kind is not None and scope.name is not None
        if (scope.key is not None) + (scope.prefix is not None) + of_resource != 1:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"scopes[{index}]: give one of key, prefix, or kind and name",
                {"field": f"scopes[{index}]"},
            )
        resource = None
        if scope.kind is not None and scope.name is not None:
            check_name(f"scopes[{index}].name", scope.name, limits.name_bytes)
            resource = (int(KINDS[scope.kind]), scope.name)
        if scope.key is not None:
            check_name(f"scopes[{index}].key", scope.key, limits.key_bytes)
        return cls(index, scope.key, scope.prefix, resource, scope.after)

    def includes(self, change: FeedChange) -> bool:
        """Return whether a change is about this scope."""
        if change.resource is not None:
            return change.resource == self.resource
        if self.prefix is not None:
            return change.key.startswith(self.prefix)
        return change.key == self.key

    def state(self, state: CoordinationImage, kind: str, room: AnswerRoom) -> News:
        """Return the present state."""
        if room.full:
            return ScopeNews(self.number, POSTPONED)
        if self.resource is not None:
            return self._queue(state, self.resource, kind, room)
        if self.key is not None:
            found = state.keys.get(self.key)
            if not room.take(1, 0 if found is None else len(found.value)):
                return ScopeNews(self.number, POSTPONED)
            records = () if found is None else (describe_key(found),)
            return ScopeNews(self.number, kind, records)
        keys = list(islice(keys_of(state, self.prefix or ""), SNAPSHOT_KEYS_MAX + 1))
        size, found_keys = 0, []
        for key in keys:
            found_keys.append(state.keys[key])
            size += len(found_keys[-1].value)
            if size > SNAPSHOT_BYTES_MAX or len(found_keys) > SNAPSHOT_KEYS_MAX:
                room.take(len(found_keys), 0)
                return ScopeNews(self.number, kind, truncated=True)
        if not room.take(len(found_keys), size):
            return ScopeNews(self.number, POSTPONED)
        return ScopeNews(self.number, kind, tuple(map(describe_key, found_keys)))

    def changes(self, feed: CoordinationFeed, after: int) -> list[FeedChange]:
        """Return the changes behind a revision, which the feed reaches."""
        if self.key is not None:
            return feed.of_key(self.key, after)
        if self.prefix is not None:
            return feed.with_prefix(self.prefix, after)
        assert self.resource is not None
        last = feed.last_of(self.resource)
        return [FeedChange(last, resource=self.resource)] if last > after else []

    def news(
        self, state: CoordinationImage, changes: Sequence[FeedChange], room: AnswerRoom
    ) -> News:
        """Return the news of these changes, of which there is one at least."""
        if room.full:
            return ScopeNews(self.number, POSTPONED)
        if self.resource is not None:
            return self._queue(state, self.resource, CHANGES, room)
        if not room.take(len(changes), sum(change.size for change in changes)):
            return ScopeNews(self.number, POSTPONED)
        found = (
            KeyChangeReply(c.key, c.revision, None if c.record is None else describe_key(c.record))
            for c in changes
        )
        return ScopeNews(self.number, CHANGES, changes=tuple(found))

    def _queue(
        self,
        state: CoordinationImage,
        resource: CoordinationResource,
        kind: str,
        room: AnswerRoom,
    ) -> News:
        length = len(state.queues.get(resource, ()))
        is_long = length > QUEUE_AT_ONCE
        size = 0 if is_long else sum(len(each.data) for each in state.queue(resource))
        if not room.take(length, size):
            return ScopeNews(self.number, POSTPONED)
        entries = describe_queue(state, resource)
        if not is_long and size <= ANSWER_BYTES_MAX:
            return ScopeNews(self.number, kind, entries=tuple(entries))
        return LongMessage(ScopeNews(self.number, kind), "entries", entries, length)


def watch_reply(
    image: MetadataImage, revision: int, news: Sequence[News]
) -> CoordinationWatchReply | LongMessage:
    """Return the answer with the news of these scopes."""
    head = CoordinationWatchReply(revision, readable_offset(image), image.epoch)
    if any(isinstance(each, LongMessage) for each in news):
        return LongMessage(head, "scopes", news, len(news))
    short = tuple(each for each in news if isinstance(each, ScopeNews))
    return msgspec.structs.replace(head, scopes=short)
