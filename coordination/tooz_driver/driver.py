"""tooz's coordinator: groups, elections, locks and the heartbeat, over our client.

Rules that tooz has and our interfaces don't:

- A group is there or not. It is a key, and its members are members of a group of ours. A member
  enters first and then writes the group's key; whoever deletes a group reads the key, looks for
  members, and deletes the key if nobody has written it since. So no group goes with a member in it.
- The application must call `heartbeat`. Our session beats by itself, so the driver ends it when no
  `heartbeat` came for `timeout` seconds. A process that hangs loses its memberships as it should.
- Anybody who has a member's id can make it leave. Our store lets only the session itself do that.
  So the driver notes the membership's token as revoked, and all drivers pass over it.
- Events come only when the application calls `run_watchers`.

Calls of one coordinator run in the order in which they were made.
"""

import asyncio
import ssl
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import tooz
from tooz import coordination, utils
from tooz.coordination import Capabilities, Characteristics, CoordAsyncResult, CoordinatorResult

from coordination.backend import Auth
from coordination.connect import connect
from coordination.coordinator import Coordinator
from coordination.election import Term
from coordination.errors import (
    CandidateExists,
    KeyExists,
    KeyMissing,
    MemberExists,
    NotHeld,
    RevisionMismatch,
)
from coordination.loop_thread import LoopThread
from coordination.tooz_driver.locks import ToozLock
from coordination.tooz_driver.translating import as_bytes, as_text, from_text, our_url, translated
from coordination.types import Member

T = TypeVar("T")

_TIMEOUT_S: Final = 30.0
_GROUPS: Final = "groups"
_REVOKED: Final = "revoked"


class LogbergDriver(coordination.CoordinationDriverCachedRunWatchers):
    """A coordinator on one of our stores.

    URL: `logberg+http://host:port,host:port/NAMESPACE?timeout=30` for our controllers; the other
    stores are in `translating.SCHEMES`. `token` is a bearer token, `ca` a file with the authority's
    certificate. Further options are those of the backend.
    """

    CHARACTERISTICS = (
        Characteristics.DISTRIBUTED_ACROSS_THREADS,
        Characteristics.DISTRIBUTED_ACROSS_PROCESSES,
        Characteristics.DISTRIBUTED_ACROSS_HOSTS,
        Characteristics.LINEARIZABLE,
        Characteristics.SEQUENTIAL,
        Characteristics.CAUSAL,
        Characteristics.SERIALIZABLE,
        Characteristics.SAME_VIEW_UNDER_PARTITIONS,
    )

    def __init__(self, member_id: bytes | str, parsed_url: Any, options: dict[str, Any]) -> None:
        """`options`: lists of texts, of which the last counts. Raises ToozError."""
        super().__init__(as_bytes(member_id), parsed_url, options)
        given = {name: str(value) for name, value in utils.collapse(options).items()}
        try:
            self._timeout_s = float(given.pop("timeout", _TIMEOUT_S))
        except ValueError as error:
            raise tooz.ToozError(f"timeout is no number of seconds: {error}") from error
        token, self._ca = given.pop("token", ""), given.pop("ca", None)
        self._auth = Auth(token=token) if token else None
        self._url, self._namespace = our_url(parsed_url, given)
        self._me: Final = as_text(self._member_id)
        self._thread: LoopThread | None = None
        self._client: Coordinator | None = None
        self._terms: dict[bytes, Term] = {}

    # -- beginning, end, heartbeat ---------------------------------------------------------------

    def _start(self) -> None:
        thread = LoopThread()
        try:
            with translated():
                self._client = thread.run(self._open())
        except BaseException:
            thread.close()
            raise
        self._thread = thread

    async def _open(self) -> Coordinator:
        self._turn = asyncio.Lock()
        client = await connect(
            self._url,
            ttl=self._timeout_s,
            namespace=self._namespace,
            auth=self._auth,
            ssl=None if self._ca is None else ssl.create_default_context(cafile=self._ca),
        )
        self._beat = asyncio.Event()
        self._waiting = asyncio.create_task(self._end_without_heartbeat(client), name="heartbeat")
        return client

    def _stop(self) -> None:
        assert self._thread is not None
        thread, self._thread = self._thread, None
        try:
            with translated():
                thread.run(self._close())
        finally:
            thread.close()
            self._client = None
            self._terms.clear()

    async def _close(self) -> None:
        self._waiting.cancel()
        await self._connected.aclose()

    def heartbeat(self) -> float:
        """Say that the application lives; return after how many seconds to say so again.

        Raises ToozError if the session is over: nothing comes back by itself.
        """
        self._run(self._note_heartbeat())
        return self._timeout_s / 2

    async def _note_heartbeat(self) -> None:
        await self._connected.session.verify()
        self._beat.set()

    async def _end_without_heartbeat(self, client: Coordinator) -> None:
        while True:
            self._beat.clear()
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._beat.wait()
            except TimeoutError:
                await client.aclose()
                return

    # -- groups ----------------------------------------------------------------------------------

    def create_group(self, group_id: bytes) -> CoordAsyncResult[None]:
        """Make a group. The result raises GroupAlreadyExist."""
        return self._submit(self._create_group(group_id))

    def delete_group(self, group_id: bytes) -> CoordAsyncResult[None]:
        """Delete a group without members. The result raises GroupNotCreated, GroupNotEmpty."""
        return self._submit(self._delete_group(group_id))

    def get_groups(self) -> CoordAsyncResult[list[bytes]]:
        """Return the ids of all groups."""
        return self._submit(self._groups())

    def join_group(
        self, group_id: bytes, capabilities: Capabilities | None = None
    ) -> CoordAsyncResult[None]:
        """Join a group. The result raises GroupNotCreated, MemberAlreadyExist."""
        return self._submit(self._join(group_id, capabilities))

    def leave_group(self, group_id: bytes) -> CoordAsyncResult[None]:
        """Leave a group. The result raises GroupNotCreated, MemberNotJoined."""
        return self._submit(self._leave(group_id))

    def get_members(self, group_id: bytes) -> CoordAsyncResult[set[bytes]]:
        """Return the ids of a group's members. The result raises GroupNotCreated."""

        async def ids() -> set[bytes]:
            return set(await self._members(group_id))

        return self._submit(ids())

    def get_members_with_capabilities(
        self, group_id: bytes
    ) -> CoordAsyncResult[dict[bytes, Capabilities | None]]:
        """Return members and capabilities, of one moment. The result raises GroupNotCreated."""

        async def all_of_them() -> dict[bytes, Capabilities | None]:
            members = await self._members(group_id)
            return {member_id: utils.loads(member.data) for member_id, member in members.items()}

        return self._submit(all_of_them())

    def get_member_capabilities(
        self, group_id: bytes, member_id: bytes
    ) -> CoordAsyncResult[Capabilities | None]:
        """Return what a member said of itself. Raises GroupNotCreated, MemberNotJoined."""

        async def capabilities() -> Capabilities | None:
            found: Capabilities | None = utils.loads((await self._member(group_id, member_id)).data)
            return found

        return self._submit(capabilities())

    def get_member_info(
        self, group_id: bytes, member_id: bytes
    ) -> CoordAsyncResult[dict[str, Any]]:
        """Return `capabilities`, `token` and `session` of a member."""

        async def info() -> dict[str, Any]:
            member = await self._member(group_id, member_id)
            capabilities = utils.loads(member.data)
            return {"capabilities": capabilities, "token": member.token, "session": member.session}

        return self._submit(info())

    def update_capabilities(
        self, group_id: bytes, capabilities: Capabilities
    ) -> CoordAsyncResult[None]:
        """Change our capabilities. The result raises GroupNotCreated, MemberNotJoined."""
        return self._submit(self._update(group_id, capabilities))

    async def _create_group(self, group_id: bytes) -> None:
        try:
            await self._connected.storage.put(_key(_GROUPS, group_id), b"")
        except KeyExists as error:
            raise coordination.GroupAlreadyExist(group_id) from error

    async def _delete_group(self, group_id: bytes) -> None:
        storage = self._connected.storage
        while True:
            record = await storage.fetch(_key(_GROUPS, group_id))
            if record is None:
                raise coordination.GroupNotCreated(group_id)
            if await self._present(group_id):
                raise coordination.GroupNotEmpty(group_id)
            try:
                await storage.delete(record.key, expect=record.mod_revision)
            except RevisionMismatch:
                continue  # Somebody joined in between.
            async for revoked in storage.list(_key(_REVOKED, group_id), keys_only=True):
                await storage.delete(revoked.key)
            return

    async def _groups(self) -> list[bytes]:
        records = self._connected.storage.list(_GROUPS, keys_only=True)
        return [from_text(record.key.partition("/")[2]) async for record in records]

    async def _join(self, group_id: bytes, capabilities: Capabilities | None) -> None:
        await self._check_created(group_id)
        if self._member_id in await self._present(group_id):
            raise coordination.MemberAlreadyExist(group_id, self._member_id)
        group = self._connected.group(as_text(group_id))
        await group.leave(self._me)  # A membership of ours that was revoked.
        try:
            await group.join(self._me, utils.dumps(capabilities))
        except MemberExists as error:
            raise coordination.MemberAlreadyExist(group_id, self._member_id) from error
        try:
            await self._connected.storage.update(_key(_GROUPS, group_id), b"")
        except KeyMissing as error:
            await group.leave(self._me)
            raise coordination.GroupNotCreated(group_id) from error
        self._joined_groups.add(group_id)

    async def _leave(self, group_id: bytes) -> None:
        await self._check_created(group_id)
        member = (await self._present(group_id)).get(self._member_id)
        left = await self._connected.group(as_text(group_id)).leave(self._me)
        if member is None:
            raise coordination.MemberNotJoined(group_id, self._member_id)
        if not left:
            key = f"{_key(_REVOKED, group_id)}/{self._me}"
            await self._connected.storage.upsert(key, str(member.token))
        self._joined_groups.discard(group_id)

    async def _update(self, group_id: bytes, capabilities: Capabilities) -> None:
        await self._member(group_id, self._member_id)
        group = self._connected.group(as_text(group_id))
        try:
            await group.update(self._me, utils.dumps(capabilities))
        except NotHeld as error:
            raise coordination.MemberNotJoined(group_id, self._member_id) from error

    async def _member(self, group_id: bytes, member_id: bytes) -> Member:
        members = await self._members(group_id)
        try:
            return members[as_bytes(member_id)]
        except KeyError as error:
            raise coordination.MemberNotJoined(group_id, member_id) from error

    async def _members(self, group_id: bytes) -> dict[bytes, Member]:
        await self._check_created(group_id)
        return await self._present(group_id)

    async def _present(self, group_id: bytes) -> dict[bytes, Member]:
        """Return the members of a group, without those whose membership was revoked."""
        members = await self._connected.group(as_text(group_id)).membership()
        revoked: dict[str, int] = {}
        if members:
            records = self._connected.storage.list(_key(_REVOKED, group_id))
            revoked = {r.key.rpartition("/")[2]: int(r.value) async for r in records}
        return {
            from_text(name): member
            for name, member in members.items()
            if member.token > revoked.get(name, -1)
        }

    async def _check_created(self, group_id: bytes) -> None:
        if await self._connected.storage.fetch(_key(_GROUPS, group_id)) is None:
            raise coordination.GroupNotCreated(group_id)

    # -- elections and locks ---------------------------------------------------------------------

    def run_watchers(self, timeout: float | None = None) -> list[Any]:
        """Call what watches groups, then run for the elections that somebody watches."""
        results = super().run_watchers(timeout)
        self.run_elect_coordinator()
        return results

    def run_elect_coordinator(self) -> None:
        """Be a candidate wherever `watch_elected_as_leader` asks for it; say when we lead."""
        for group_id, hooks in list(self._hooks_elected_leader.items()):
            if self._run(self._elected(group_id)):
                hooks.run(coordination.LeaderElected(group_id, self._member_id))

    def stand_down_group_leader(self, group_id: bytes) -> bool:
        """Stop leading; we are no candidate until the next `run_watchers`. False: we didn't."""
        return bool(self._run(self._stand_down(group_id)))

    def get_leader(  # type: ignore[override] # tooz's own drivers return None, too
        self, group_id: bytes
    ) -> CoordAsyncResult[bytes | None]:
        """Return the leader's id; None: nobody leads."""

        async def leader() -> bytes | None:
            found = await self._connected.election(as_text(group_id)).get_leader()
            return None if found is None else from_text(found.id)

        return self._submit(leader())

    def get_lock(self, name: bytes) -> ToozLock:
        """Return a lock. Its grants have tokens, see `ToozLock.token`."""
        return ToozLock(name, as_text(name), self._connected, self._run_beside)

    async def _elected(self, group_id: bytes) -> bool:
        """Whether we lead since just now."""
        term = self._terms.get(group_id)
        if term is not None and term.held:
            return False
        try:
            new = await self._connected.election(as_text(group_id)).nominate(self._me)
        except CandidateExists:
            return False  # Another process has our member id.
        if new is None:
            return False
        self._terms[group_id] = new
        return True

    async def _stand_down(self, group_id: bytes) -> bool:
        self._terms.pop(group_id, None)
        return await self._connected.election(as_text(group_id)).resign(self._me)

    # -- the way into the loop -------------------------------------------------------------------

    @property
    def _connected(self) -> Coordinator:
        if self._client is None:
            raise tooz.ToozError("the coordinator was not started")
        return self._client

    def _submit(self, work: Coroutine[Any, Any, T]) -> CoordAsyncResult[T]:
        """Run a call behind those that were made before it."""
        if self._thread is None:
            work.close()
            raise tooz.ToozError("the coordinator was not started")
        return CoordinatorResult(self._thread.submit(self._in_turn(work)), translated)

    async def _in_turn(self, work: Coroutine[Any, Any, T]) -> T:
        async with self._turn:
            return await work

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._submit(work).get()

    def _run_beside(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a call that may wait for long, and that no other one waits for."""
        if self._thread is None:
            work.close()
            raise tooz.ToozError("the coordinator was not started")
        with translated():
            return self._thread.run(work)


def _key(folder: str, group_id: bytes) -> str:
    return f"{folder}/{as_text(group_id)}"
