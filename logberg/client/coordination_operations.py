"""The operations of coordination on the controllers: sessions, entries and keys (KIP-30, ADR 0055).

Rule: as in `operations`. For administrators: a service takes `logberg.connect_coordination`, whose
client keeps a session, and stops what it does when that session is over.
"""

from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any, TypeVar

import msgspec

from logberg.client.asking import Asking
from logberg.client.client_errors import ClientError
from logberg.client.paged_lists import all_pages, joining
from metadata.errors import ErrorCode
from metadata.messages.coordination import (
    BreakGrantReply,
    CommitReply,
    CoordinationLimitsReply,
    EndSessionReply,
    EntriesReply,
    GetKeyReply,
    KeyDescription,
    KeyOperation,
    ListKeysReply,
    ListSessionsReply,
    ResourceKind,
)
from metadata.messages.coordination_watch import CoordinationWatchReply, KeyChangeReply
from metadata.messages.message import ReplyMessage

T = TypeVar("T")
_BASE = "/v1/coordination"
WATCH_WAIT_MS = 4_000
"""How long a controller holds the request of a watch for which there is no news."""


class KeyNews(ReplyMessage, frozen=True):
    """What a watch of keys tells at once."""

    revision: int
    """Everything up to here was told; a watch `after` it goes on behind it."""
    kind: str
    """snapshot, changes or resync."""
    records: tuple[KeyDescription, ...]
    """Of a snapshot or resync: all keys that are there."""
    changes: tuple[KeyChangeReply, ...]


class CoordinationOperations(Asking):
    """Every method raises ClientError."""

    async def coordination_sessions(self, session_id: str | None = None) -> ListSessionsReply:
        """Return sessions by id; `session_id`: only that one, or none if it has ended."""
        query = {} if session_id is None else {"sessionId": session_id}
        return await _known(
            all_pages(self.get, f"{_BASE}/sessions", ListSessionsReply, joining("sessions"), query)
        )

    async def end_session(
        self,
        session_id: str,
        *,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> EndSessionReply:
        """End anybody's session. Its entries go with it, and whoever is next is granted."""
        body = {"sessionId": session_id, "revoke": True, "dryRun": dry_run}
        return await _known(
            self.change(
                "POST",
                f"{_BASE}/sessions/end",
                EndSessionReply,
                body,
                reason,
                request_id=request_id,
                expect_offset=expect_offset,
            )
        )

    async def entries_of(self, kind: ResourceKind, name: str | None = None) -> EntriesReply:
        """Return the entries of a group, election or lock in the order of its queue.

        Without a name: those of all of this kind, by name and id.
        """
        query = {"kind": kind} if name is None else {"kind": kind, "name": name}
        return await self._entries(query)

    async def entries_of_session(self, session_id: str) -> EntriesReply:
        """Return what a session is a member of, leads or waits for."""
        return await self._entries({"sessionId": session_id})

    async def break_grant(
        self,
        kind: ResourceKind,
        name: str,
        *,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> BreakGrantReply:
        """Remove whoever holds a lock or leads an election; whoever is next is granted."""
        body = {"kind": kind, "name": name, "dryRun": dry_run}
        return await _known(
            self.change(
                "POST",
                f"{_BASE}/entries/break",
                BreakGrantReply,
                body,
                reason,
                request_id=request_id,
                expect_offset=expect_offset,
            )
        )

    async def coordination_key(self, key: str) -> GetKeyReply:
        """Return one key; its `record` is None if it isn't there."""
        return await _known(self.get(f"{_BASE}/key", GetKeyReply, {"key": key}))

    async def coordination_keys(
        self, prefix: str = "", *, keys_only: bool = False
    ) -> ListKeysReply:
        """Return the keys that begin with the prefix, in the order of their code points."""
        query = {"prefix": prefix} | ({"keysOnly": "true"} if keys_only else {})
        return await _known(
            all_pages(self.get, f"{_BASE}/keys", ListKeysReply, joining("records"), query)
        )

    async def watch_keys(
        self, key: str, *, is_prefix: bool = False, after: int | None = None, once: bool = False
    ) -> AsyncIterator[KeyNews]:
        """Yield what happens to a key, or to all keys with a prefix, until the caller stops.

        `after`: only what has a larger revision; None: what is there comes first, as a `snapshot`.
        A `resync` is that too, where the log no longer has all changes. `once`: don't wait.
        """
        scope = {"prefix" if is_prefix else "key": key}
        while True:
            body = {
                "scopes": [{**scope, "after": after}],
                "waitMs": 0 if once else WATCH_WAIT_MS,
                "minRevision": -1 if after is None else after,
            }
            path, said = f"{_BASE}/watch", msgspec.json.encode(body)
            asking = self._call("POST", path, CoordinationWatchReply, said, {}, {})
            reply = await _known(asking)
            after = max(reply.revision, -1 if after is None else after)
            for news in reply.scopes:
                records, changes = news.records, news.changes
                if news.truncated:
                    listed = await self.coordination_keys(key)
                    after, records = listed.revision, listed.records
                yield KeyNews(after, news.kind, records, changes)
            if once:
                return

    async def commit_keys(
        self,
        *operations: KeyOperation,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> CommitReply:
        """Write keys: all of the operations, or none."""
        body = {"operations": [_given(each) for each in operations], "dryRun": dry_run}
        return await _known(
            self.change(
                "POST",
                f"{_BASE}/commit",
                CommitReply,
                body,
                reason,
                request_id=request_id,
                expect_offset=expect_offset,
            )
        )

    async def coordination_limits(self) -> CoordinationLimitsReply:
        """Return what coordination allows, and how much of it is used."""
        return await _known(self.get(f"{_BASE}/limits", CoordinationLimitsReply))

    async def _entries(self, query: Mapping[str, str]) -> EntriesReply:
        return await _known(
            all_pages(self.get, f"{_BASE}/entries", EntriesReply, joining("entries"), query)
        )


async def _known(asking: Awaitable[T]) -> T:
    """Return the answer. Raises ClientError, also if an older release has no such route."""
    try:
        return await asking
    except ClientError as error:
        if error.code != ErrorCode.NOT_FOUND:
            raise
        message = (
            f"these controllers are of a release without coordination ({error}); upgrade them, "
            "then raise logberg.version to 4"
        )
        raise ClientError(ErrorCode.UNSUPPORTED_VERSION, message, error.status) from None


def _given(operation: KeyOperation) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(operation)
    fields["data"] = b64encode(operation.data).decode()
    return fields
