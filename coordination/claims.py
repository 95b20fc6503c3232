"""Entering a queue, waiting for the grant, and leaving: what elections and locks have in common.

Rule: whoever stops waiting, for whatever reason, leaves no entry behind. A request that was sent is
never abandoned: it is awaited before the entry is removed, because it could arrive after the
removal. A removal that fails is repeated in the background until it succeeds or the session is
over, because heartbeats would keep a forgotten entry for ever. Whoever enters again under the same
id waits for that: else it would find its old entry, and lose it to the removal.

Waiting ends with the grant, with the caller's time, or with the session: a candidate whose session
died never waits on, and is never told that it leads.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from coordination.backend import Claim, EntryExists, Resource, ResourceEntries, ResourceEntry
from coordination.calls import SessionCalls
from coordination.errors import CandidateExists, CoordinationError, DeadlineExceeded, NotHeld
from coordination.following import ResourceFollowers, find_entry
from coordination.holding import HeldGrant
from coordination.scopes import sleep
from coordination.session import Session
from coordination.types import Token

T = TypeVar("T")
H = TypeVar("H", bound=HeldGrant)
Admits = Callable[[ResourceEntries, ResourceEntry], bool]
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0


class Claims:
    """One client's entries in queues."""

    def __init__(self, calls: SessionCalls, followers: ResourceFollowers) -> None:
        self.calls = calls
        self.followers = followers
        self.holds: set[HeldGrant] = set()
        """The grants that this client holds."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._removals: dict[tuple[Resource, str], asyncio.Task[None]] = {}
        """The removals under way in the background, by what they remove."""

    def entering(self, claim: Claim) -> Callable[[object], Coroutine[Any, Any, ResourceEntry]]:
        """Return the call that enters a queue, behind the removals that are under way now.

        It doesn't wait for the grant. It raises CandidateExists.
        """
        removal = self._removals.get((claim.resource, claim.id))

        async def enter(_session: object) -> ResourceEntry:
            if removal is not None:
                await asyncio.wait({removal})
            try:
                return await self.calls.backend.enter(claim)
            except EntryExists as error:
                raise CandidateExists(f"{claim.id!r} is another session's candidate") from error

        return enter

    async def win(
        self,
        make: Callable[[Resource, ResourceEntry, Session], H],
        resource: Resource,
        id_: str,
        data: bytes,
        *,
        shared: bool = False,
        timeout_s: float | None = None,
        admits: Admits | None = None,
    ) -> H:
        """Enter a resource and wait for the grant; make what the caller holds then.

        `timeout_s`: None waits without end, 0 takes only what is free. `admits`: a further
        condition on a granted entry, which stays true once it is. Raises DeadlineExceeded;
        CandidateExists; SessionLost; NotHeld when somebody withdrew the entry.
        """
        session = self.calls.session
        session.check()
        claim = Claim(resource, id_, data, session.id, shared)
        entering = self._start(self.calls.call(self.entering(claim)))
        try:
            entry = await asyncio.shield(entering)
            if not await self._is_free(resource, entry, admits):
                entry = await self._wait(resource, entry, session, timeout_s, admits)
            return self.hold(make(resource, entry, session))
        except BaseException:
            await self._withdraw(resource, id_, session, entering)
            raise

    def hold(self, held: H) -> H:
        """Watch over a grant as long as it is held."""
        follower = self.followers.begin(held.full_resource)
        held.watch_over(follower)
        self.holds.add(held)

        def over() -> None:
            self.holds.discard(held)
            self._start(self.followers.end(held.full_resource, follower))

        held.signal.on_end(over)
        return held

    async def give_back(self, held: HeldGrant) -> bool:
        """Remove a grant's entry if it is still that grant's; False: it wasn't.

        When the store doesn't answer, its error is raised, the grant is over all the same, and the
        removal is repeated in the background.
        """
        held.give_up()
        try:
            return await self.calls.call(
                lambda session: self.calls.backend.leave(
                    held.full_resource, held.id, session, held.token
                ),
                changes=True,
            )
        except BaseException:
            self._remove_grant(held)
            raise
        finally:
            held.signal.end(held.given_back())

    async def drop(self, held: HeldGrant) -> None:
        """Give a grant back whatever happens; if the store doesn't answer, in the background."""
        held.give_up()
        held.signal.end(held.given_back())
        if not held.session.signal.over.is_set():
            await self._bounded(self._remove_grant(held))

    async def aclose(self) -> None:
        """Stop what runs in the background. The session's end removes what is left."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- waiting ------------------------------------------------------------------------------

    async def _is_free(
        self, resource: Resource, entry: ResourceEntry, admits: Admits | None
    ) -> bool:
        """Whether what was just entered is held at once."""
        if not entry.granted or admits is None:
            return entry.granted
        return admits(await self.calls.call(lambda _: self.calls.backend.entries(resource)), entry)

    async def _wait(
        self,
        resource: Resource,
        entry: ResourceEntry,
        session: Session,
        timeout_s: float | None,
        admits: Admits | None,
    ) -> ResourceEntry:
        if timeout_s is not None and timeout_s <= 0:
            raise DeadlineExceeded(f"{resource.name!r} is taken")
        try:
            async with session.scope(), asyncio.timeout(timeout_s):
                return await self._granted(resource, entry, session, admits)
        except TimeoutError:
            raise DeadlineExceeded(f"{resource.name!r} wasn't free in {timeout_s} s") from None

    async def _granted(
        self,
        resource: Resource,
        entry: ResourceEntry,
        session: Session,
        admits: Admits | None,
    ) -> ResourceEntry:
        async with self.followers.following(resource) as follower:
            while True:
                state = follower.state
                # An older state is from before we entered.
                if state is not None and state.revision >= entry.revision:
                    mine = find_entry(state, entry.id, session.id)
                    if mine is None:
                        await session.verify()
                        raise NotHeld(f"{entry.id!r} was withdrawn from {resource.name!r}")
                    if mine.granted and (admits is None or admits(state, mine)):
                        return mine
                await follower.changed()

    # -- leaving ------------------------------------------------------------------------------

    async def _withdraw(
        self,
        resource: Resource,
        id_: str,
        session: Session,
        entering: asyncio.Task[ResourceEntry],
    ) -> None:
        """Remove an entry that may be there."""

        async def withdraw() -> None:
            (entered,) = await asyncio.gather(entering, return_exceptions=True)
            if refused(entered) or session.signal.over.is_set():
                return
            await self._leave(resource, id_, session, None)

        await self._bounded(self._remove(resource, id_, withdraw))

    async def _leave(
        self, resource: Resource, id_: str, session: Session, token: Token | None
    ) -> None:
        pause_s = FIRST_PAUSE_S
        while not session.signal.over.is_set():
            try:
                await self.calls.backend.leave(resource, id_, session.id, token)
            except CoordinationError as error:
                if not error.retryable:
                    return
                self.calls.log.warning("coordination_leave_failed", error=str(error))
            else:
                return
            await sleep(self.calls.clock, pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _remove_grant(self, held: HeldGrant) -> "asyncio.Task[None]":
        """Start to remove a grant's entry, if it is still that grant's."""
        resource, id_ = held.full_resource, held.id
        return self._remove(
            resource, id_, lambda: self._leave(resource, id_, held.session, held.token)
        )

    def _remove(
        self, resource: Resource, id_: str, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> "asyncio.Task[None]":
        """Start a removal. Whoever enters under this id later waits until it is over."""
        before = self._removals.get((resource, id_))

        async def remove() -> None:
            try:
                if before is not None:
                    await asyncio.wait({before})
                await work()
            finally:
                if self._removals.get((resource, id_)) is task:
                    del self._removals[resource, id_]

        task = self._removals[resource, id_] = self._start(remove())
        return task

    async def _bounded(self, task: "asyncio.Task[None]") -> None:
        """Wait for a task as long as one request may take; then it goes on in the background."""
        await asyncio.wait({task}, timeout=self.calls.request_timeout_s)

    def _start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever awaits the task raises it


def refused(entered: object) -> bool:
    """Whether an attempt to enter certainly left no entry of ours."""
    return isinstance(entered, CoordinationError) and entered.outcome == "not_applied"
