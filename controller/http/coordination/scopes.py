"""What one watch asks for, and the news in its scopes.

A scope is a key, the keys with a prefix, or a group, an election or a lock. News of keys are their
changes, one by one. News of a queue are the queue as it is now.
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
QUEUE_AT_ONCE: Final = 256
"""Entries of a queue. What is longer is described and encoded while it is sent."""
News = ScopeNews | LongMessage
SNAPSHOT_KEYS_MAX: Final = 1_000
SNAPSHOT_BYTES_MAX: Final = 1024 * 1024


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

    def state(self, state: CoordinationImage, kind: str) -> News:
        """Return the present state."""
        if self.resource is not None:
            return self._queue(state, self.resource, kind)
        if self.key is not None:
            found = state.keys.get(self.key)
            records = () if found is None else (describe_key(found),)
            return ScopeNews(self.number, kind, records)
        keys = list(islice(keys_of(state, self.prefix or ""), SNAPSHOT_KEYS_MAX + 1))
        size, found_keys = 0, []
        for key in keys:
            found_keys.append(state.keys[key])
            size += len(found_keys[-1].value)
            if size > SNAPSHOT_BYTES_MAX or len(found_keys) > SNAPSHOT_KEYS_MAX:
                return ScopeNews(self.number, kind, truncated=True)
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

    def news(self, state: CoordinationImage, changes: Sequence[FeedChange]) -> News:
        """Return the news of these changes, of which there is one at least."""
        if self.resource is not None:
            return self._queue(state, self.resource, CHANGES)
        found = (
            KeyChangeReply(c.key, c.revision, None if c.record is None else describe_key(c.record))
            for c in changes
        )
        return ScopeNews(self.number, CHANGES, changes=tuple(found))

    def _queue(self, state: CoordinationImage, resource: CoordinationResource, kind: str) -> News:
        length = len(state.queues.get(resource, ()))
        entries = describe_queue(state, resource)
        if length <= QUEUE_AT_ONCE:
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
