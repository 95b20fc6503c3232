"""tooz's coordinator, over our client: `groups`, `locks`, elections and the heartbeat.

Rule: each method that changes or asks something runs on the loop of `running`, and raises tooz's
errors. Events come only when the application calls `run_watchers`.
"""

import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import tooz
from tooz import coordination, utils
from tooz.coordination import Capabilities, Characteristics, CoordAsyncResult

from coordination.backend import Auth
from coordination.connect import connect
from coordination.coordinator import Coordinator
from coordination.election import Term
from coordination.errors import CandidateExists
from coordination.tooz_driver.locks import ToozLock
from coordination.tooz_driver.running import RunningClient
from coordination.tooz_driver.translating import as_bytes, as_text, from_text, our_url

T = TypeVar("T")

_TIMEOUT_S: Final = 30.0


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
        self._started_client: RunningClient | None = None
        self._terms: dict[bytes, Term] = {}

    # -- beginning, end, heartbeat ---------------------------------------------------------------

    def _start(self) -> None:
        self._started_client = RunningClient.start(self._connect, self._member_id, self._timeout_s)

    async def _connect(self) -> Coordinator:
        return await connect(
            self._url,
            ttl=self._timeout_s,
            namespace=self._namespace,
            auth=self._auth,
            ssl=None if self._ca is None else ssl.create_default_context(cafile=self._ca),
        )

    def _stop(self) -> None:
        running, self._started_client = self._running, None
        self._terms.clear()
        running.stop()

    @property
    def _running(self) -> RunningClient:
        if self._started_client is None:
            raise tooz.ToozError("the coordinator was not started")
        return self._started_client

    def heartbeat(self) -> float:
        """Say that the application lives; return after how many seconds to say so again.

        Raises ToozError if the session is over: nothing comes back by itself.
        """
        running = self._running
        running.submit(running.note_heartbeat()).get()
        return self._timeout_s / 2

    # -- groups ----------------------------------------------------------------------------------

    def create_group(self, group_id: bytes) -> CoordAsyncResult[None]:
        """Make a group. The result raises GroupAlreadyExist."""
        return self._submit(lambda running: running.groups.create(group_id))

    def delete_group(self, group_id: bytes) -> CoordAsyncResult[None]:
        """Delete a group without members. The result raises GroupNotCreated, GroupNotEmpty."""
        return self._submit(lambda running: running.groups.delete(group_id))

    def get_groups(self) -> CoordAsyncResult[list[bytes]]:
        """Return the ids of all groups."""
        return self._submit(lambda running: running.groups.ids())

    def join_group(
        self, group_id: bytes, capabilities: Capabilities | None = None
    ) -> CoordAsyncResult[None]:
        """Join a group. The result raises GroupNotCreated, MemberAlreadyExist."""

        async def join(running: RunningClient) -> None:
            await running.groups.join(group_id, capabilities)
            self._joined_groups.add(group_id)

        return self._submit(join)

    def leave_group(self, group_id: bytes) -> CoordAsyncResult[None]:
        """Leave a group. The result raises GroupNotCreated, MemberNotJoined."""

        async def leave(running: RunningClient) -> None:
            await running.groups.leave(group_id)
            self._joined_groups.discard(group_id)

        return self._submit(leave)

    def get_members(self, group_id: bytes) -> CoordAsyncResult[set[bytes]]:
        """Return the ids of a group's members. The result raises GroupNotCreated."""

        async def ids(running: RunningClient) -> set[bytes]:
            return set(await running.groups.members(group_id))

        return self._submit(ids)

    def get_members_with_capabilities(
        self, group_id: bytes
    ) -> CoordAsyncResult[dict[bytes, Capabilities | None]]:
        """Return members and capabilities, of one moment. The result raises GroupNotCreated."""

        async def all_of_them(running: RunningClient) -> dict[bytes, Capabilities | None]:
            members = await running.groups.members(group_id)
            return {member_id: utils.loads(member.data) for member_id, member in members.items()}

        return self._submit(all_of_them)

    def get_member_capabilities(
        self, group_id: bytes, member_id: bytes
    ) -> CoordAsyncResult[Capabilities | None]:
        """Return what a member said of itself. Raises GroupNotCreated, MemberNotJoined."""

        async def capabilities(running: RunningClient) -> Capabilities | None:
            member = await running.groups.member(group_id, member_id)
            found: Capabilities | None = utils.loads(member.data)
            return found

        return self._submit(capabilities)

    def get_member_info(
        self, group_id: bytes, member_id: bytes
    ) -> CoordAsyncResult[dict[str, Any]]:
        """Return `capabilities`, `token` and `session` of a member."""

        async def info(running: RunningClient) -> dict[str, Any]:
            member = await running.groups.member(group_id, member_id)
            capabilities = utils.loads(member.data)
            return {"capabilities": capabilities, "token": member.token, "session": member.session}

        return self._submit(info)

    def update_capabilities(
        self, group_id: bytes, capabilities: Capabilities
    ) -> CoordAsyncResult[None]:
        """Change our capabilities. The result raises GroupNotCreated, MemberNotJoined."""
        return self._submit(lambda running: running.groups.update(group_id, capabilities))

    # -- elections and locks ---------------------------------------------------------------------

    def run_watchers(self, timeout: float | None = None) -> list[Any]:
        """Call what watches groups, then run for the elections that somebody watches."""
        results: list[Any] = super().run_watchers(timeout)
        self.run_elect_coordinator()
        return results

    def run_elect_coordinator(self) -> None:
        """Be a candidate wherever `watch_elected_as_leader` asks for it; say when we lead."""
        for group_id, hooks in list(self._hooks_elected_leader.items()):
            if self._elected(group_id).get():
                hooks.run(coordination.LeaderElected(group_id, self._member_id))

    def stand_down_group_leader(self, group_id: bytes) -> bool:
        """Stop leading; we are no candidate until the next `run_watchers`. False: we didn't."""
        self._terms.pop(group_id, None)
        return bool(
            self._submit(
                lambda running: running.client.election(as_text(group_id)).resign(self._me)
            ).get()
        )

    def get_leader(  # type: ignore[override] # tooz's own drivers return None, too
        self, group_id: bytes
    ) -> CoordAsyncResult[bytes | None]:
        """Return the leader's id; None: nobody leads."""

        async def leader(running: RunningClient) -> bytes | None:
            found = await running.client.election(as_text(group_id)).get_leader()
            return None if found is None else from_text(found.id)

        return self._submit(leader)

    def get_lock(self, name: bytes) -> ToozLock:
        """Return a lock. Its grants have tokens, see `ToozLock.token`."""
        return ToozLock(name, as_text(name), self._run_beside)

    def _elected(self, group_id: bytes) -> CoordAsyncResult[bool]:
        """Whether we lead since just now."""

        async def elected(running: RunningClient) -> bool:
            term = self._terms.get(group_id)
            if term is not None and term.held:
                return False
            try:
                new = await running.client.election(as_text(group_id)).nominate(self._me)
            except CandidateExists:
                return False  # Another process has our member id.
            if new is None:
                return False
            self._terms[group_id] = new
            return True

        return self._submit(elected)

    def _submit(
        self, make: Callable[[RunningClient], Coroutine[Any, Any, T]]
    ) -> CoordAsyncResult[T]:
        running = self._running
        return running.submit(make(running))

    def _run_beside(self, make: Callable[[Coordinator], Coroutine[Any, Any, T]]) -> T:
        running = self._running
        return running.run_beside(make(running.client))
