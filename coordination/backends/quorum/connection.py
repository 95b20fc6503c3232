"""A client's connection to the controllers.

Rule: a revision is the offset of a record in the metadata log, and a token is the offset of the
grant's record. So tokens of all resources can be compared, and the audit says who held what when.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Final

import structlog

from coordination.backend import (
    Claim,
    Commit,
    Committed,
    EntryExists,
    OpenedSession,
    RecordPage,
    Resource,
    ResourceEntries,
    ResourceEntry,
    WatchScope,
)
from coordination.backends.quorum.asking import ControllerRequests
from coordination.backends.quorum.polling import Poll, QuorumWatch
from coordination.backends.quorum.readings import entries_of, record_of
from coordination.errors import CoordinationError, KeyExists, TxnTooLarge
from coordination.types import Capabilities, Record, Revision, SessionId, Token
from metadata.messages.coordination import (
    BreakGrantReply,
    BreakGrantRequest,
    ChangeEntryRequest,
    CommitReply,
    CommitRequest,
    CoordinationLimitsReply,
    EndSessionReply,
    EndSessionRequest,
    EnterRequest,
    EntriesReply,
    EntryReply,
    GetKeyReply,
    KeyCheck,
    KeyOperation,
    LeaveReply,
    LeaveRequest,
    ListKeysReply,
    OpenSessionReply,
    OpenSessionRequest,
    RenewSessionReply,
    RenewSessionRequest,
    TokenFence,
)

ROOT: Final = "/v1/coordination"
_UNKNOWN: Final = Capabilities(
    history=True,
    txn=True,
    txn_scope="store",
    atomic_list=True,
    push_watch=True,
    min_ttl_s=0.1,
    max_ttl_s=3600.0,
    ttl_resolution_s=0.001,
    max_value_bytes=1 << 20,
    max_key_bytes=1024,
    max_txn_operations=128,
    fencing_scope="store",
    linearizable_reads=True,
    leader_failover=True,
)
"""Before the controllers have said their limits."""


class QuorumBackend:
    """`coordination.backend.Backend` over the routes below `/v1/coordination`."""

    def __init__(
        self,
        requests: ControllerRequests,
        client_name: str,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        """`client_name`: shown beside the sessions; `close` ends the connections."""
        self._requests = requests
        self._client_name = client_name
        self._close = close
        self._capabilities = _UNKNOWN
        self._commit_bytes_max = 1 << 20
        self._seen = Revision(-1)
        self._polls: list[Poll] = []
        self._log = structlog.get_logger()

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def open(self) -> None:
        limits = await self._requests.ask("GET", f"{ROOT}/limits", CoordinationLimitsReply)
        self._commit_bytes_max = limits.commit_bytes_max
        self._capabilities = replace(
            _UNKNOWN,
            min_ttl_s=limits.ttl_ms_min / 1000,
            max_ttl_s=limits.ttl_ms_max / 1000,
            max_value_bytes=min(limits.value_bytes_max, limits.data_bytes_max),
            max_key_bytes=min(limits.key_bytes_max, limits.name_bytes_max),
            max_txn_operations=limits.commit_operations_max,
        )

    async def aclose(self) -> None:
        for poll in self._polls:
            await poll.aclose()
        await self._close()

    # -- sessions -----------------------------------------------------------------------------

    async def open_session(self, ttl_s: float) -> OpenedSession:
        request = OpenSessionRequest(max(1, round(ttl_s * 1000)), self._client_name)
        opened = await self._requests.ask(
            "POST",
            f"{ROOT}/sessions",
            OpenSessionReply,
            request,
            request_id=self._requests.request_ids.of(None),
        )
        self._saw(opened.revision)
        return OpenedSession(
            SessionId(opened.session_id), opened.ttl_ms / 1000, Revision(opened.revision)
        )

    async def renew(self, session: SessionId) -> float:
        request = RenewSessionRequest(session)
        reply = await self._requests.ask(
            "POST", f"{ROOT}/sessions/renew", RenewSessionReply, request
        )
        return reply.ttl_ms / 1000

    async def end_session(self, session: SessionId) -> None:
        ended = await self._requests.ask(
            "POST",
            f"{ROOT}/sessions/end",
            EndSessionReply,
            EndSessionRequest(session),
            request_id=self._requests.request_ids.of(None),
        )
        self._saw(ended.revision)

    # -- queues -------------------------------------------------------------------------------

    async def enter(self, claim: Claim) -> ResourceEntry:
        resource = claim.resource
        request = EnterRequest(
            resource.kind, resource.name, claim.id, claim.session, claim.data, claim.shared
        )
        try:
            entered = await self._requests.ask(
                "POST",
                f"{ROOT}/entries",
                EntryReply,
                request,
                request_id=self._requests.request_ids.of(None),
            )
        except EntryExists as error:
            raise EntryExists(str(error), entry=await self._other(claim)) from None
        self._saw(entered.revision)
        return ResourceEntry(
            claim.id,
            claim.data,
            claim.session,
            Token(entered.token if entered.granted else entered.place),
            Revision(entered.revision),
            entered.granted,
            claim.shared,
        )

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        request = ChangeEntryRequest(resource.kind, resource.name, id_, session, data)
        changed = await self._requests.ask(
            "POST",
            f"{ROOT}/entries/change",
            EntryReply,
            request,
            request_id=self._requests.request_ids.of(None),
        )
        return self._saw(changed.revision)

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        request = LeaveRequest(resource.kind, resource.name, id_, session, token)
        left = await self._requests.ask(
            "POST",
            f"{ROOT}/entries/leave",
            LeaveReply,
            request,
            request_id=self._requests.request_ids.of(None),
        )
        self._saw(left.revision)
        return left.left

    async def break_grant(self, resource: Resource) -> bool:
        broken = await self._requests.ask(
            "POST",
            f"{ROOT}/entries/break",
            BreakGrantReply,
            BreakGrantRequest(resource.kind, resource.name),
            request_id=self._requests.request_ids.of(None),
        )
        self._saw(broken.revision)
        return broken.broken

    async def entries(self, resource: Resource) -> ResourceEntries:
        query = {"kind": resource.kind, "name": resource.name}
        reply = await self._requests.ask("GET", f"{ROOT}/entries", EntriesReply, query=query)
        return ResourceEntries(Revision(reply.revision), entries_of(reply.entries))

    async def _other(self, claim: Claim) -> ResourceEntry | None:
        """Return the entry that is in the way; None if it went meanwhile."""
        try:
            state = await self.entries(claim.resource)
        except CoordinationError:
            return None
        return next((entry for entry in state.entries if entry.id == claim.id), None)

    # -- keys ---------------------------------------------------------------------------------

    async def get(self, key: str, *, stale: bool = False) -> Record | None:
        query = {"key": key} | ({"consistency": "stale"} if stale else {})
        reply = await self._requests.ask("GET", f"{ROOT}/key", GetKeyReply, query=query)
        return None if reply.record is None else record_of(reply.record)

    async def pages(self, prefix: str, *, keys_only: bool, page: int) -> AsyncIterator[RecordPage]:
        query = {"prefix": prefix, "limit": str(min(page, 1000))}
        if keys_only:
            query["keysOnly"] = "true"
        while True:
            reply = await self._requests.ask("GET", f"{ROOT}/keys", ListKeysReply, query=query)
            records = tuple(record_of(record) for record in reply.records)
            yield RecordPage(Revision(reply.revision), records)
            if reply.continuation is None:
                return
            query["continuation"] = reply.continuation

    async def commit(self, commit: Commit) -> Committed:
        # A request that is much too large, the server doesn't read to its end.
        size = sum(len(step.key) + len(step.data) for step in commit.operations)
        if size > self._commit_bytes_max:
            raise TxnTooLarge(
                f"its keys and values have {size} bytes; the most are {self._commit_bytes_max}"
            )
        request = CommitRequest(
            operations=tuple(
                KeyOperation(step.kind, step.key, step.data, step.expect)
                for step in commit.operations
            ),
            checks=tuple(KeyCheck(check.key, check.mod_revision) for check in commit.checks),
            fences=tuple(
                TokenFence(fence.resource.kind, fence.resource.name, fence.token)
                for fence in commit.fences
            ),
            session_id=commit.session,
        )
        try:
            made = await self._requests.ask(
                "POST",
                f"{ROOT}/commit",
                CommitReply,
                request,
                request_id=self._requests.request_ids.of(commit.request_id),
                steps=(len(commit.checks), len(commit.fences)),
            )
        except KeyExists as error:
            error.record = await self._present(commit, error.index)
            raise
        return Committed(self._saw(made.revision), made.applied)

    async def _present(self, commit: Commit, index: int | None) -> Record | None:
        """Return the record of the key that is there already; None if it went meanwhile."""
        keys = [check.key for check in commit.checks]
        keys += [""] * len(commit.fences)
        keys += [step.key for step in commit.operations]
        try:
            return None if index is None else await self.get(keys[index])
        except CoordinationError:
            return None

    # -- watches ------------------------------------------------------------------------------

    def watch(self, scope: WatchScope, after: Revision | None) -> QuorumWatch:
        poll = next((poll for poll in self._polls if not poll.full), None)
        if poll is None:
            poll = Poll(self._requests, lambda: self._seen, self._list_all, self._log)
            self._polls.append(poll)
        return poll.add(scope, after)

    async def _list_all(self, prefix: str) -> tuple[Revision, tuple[Record, ...]]:
        pages = [page async for page in self.pages(prefix, keys_only=False, page=1000)]
        return pages[0].revision, tuple(record for page in pages for record in page.records)

    def _saw(self, revision: int) -> Revision:
        """Note a revision that this client knows to be written."""
        self._seen = max(self._seen, Revision(revision))
        return Revision(revision)
