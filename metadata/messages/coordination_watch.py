"""Watches of coordination. `POST /v1/coordination/watch` (KIP-30, ADR 0055).

A watch asks again with the reply's `revision` as `after` of every scope. Rule: each change of a key
comes once, in the order of the log. If the history behind `after` is gone, the reply has the
present state instead and says `resync`. There is never a silent gap.
"""

from typing import Annotated

from msgspec import Meta

from metadata.messages.coordination import EntryDescription, KeyDescription, ResourceKind
from metadata.messages.message import Count, ReplyMessage, RequestMessage
from metadata.types import Int64


class WatchScope(RequestMessage, frozen=True):
    """What is watched: one of a key, the keys with a prefix, or a resource."""

    key: str | None = None
    prefix: str | None = None
    kind: ResourceKind | None = None
    name: str | None = None
    after: Int64 | None = None
    """Only changes behind this revision; null: the present state first."""


class CoordinationWatchRequest(RequestMessage, frozen=True):
    """Wait for changes in any of these scopes."""

    scopes: Annotated[tuple[WatchScope, ...], Meta(max_length=1000)]
    wait_ms: Count = 0
    min_revision: Int64 = -1
    """The node must know at least this revision."""


class KeyChangeReply(ReplyMessage, frozen=True):
    """One change of a key."""

    key: str
    revision: int
    record: KeyDescription | None = None
    """null: the key was removed."""


class ScopeNews(ReplyMessage, frozen=True):
    """What is new in one scope."""

    scope: int
    """Its index in the request."""
    kind: str
    """snapshot, changes or resync; postponed: no room, ask behind the same revision again."""
    records: tuple[KeyDescription, ...] = ()
    """Of a snapshot or resync of keys: all that are there."""
    changes: tuple[KeyChangeReply, ...] = ()
    entries: tuple[EntryDescription, ...] = ()
    """Of a resource: all present entries, in order."""
    truncated: bool = False
    """There are too many keys for one reply: list them, and watch behind the list's revision."""


class CoordinationWatchReply(ReplyMessage, frozen=True):
    """What is new, up to a revision."""

    revision: int
    """Everything up to here was told, for every scope of the request that isn't postponed."""
    offset: int
    epoch: int
    scopes: tuple[ScopeNews, ...] = ()
    """Only those with news."""
