"""A grant that this client holds: a leadership or a lock.

Rule: a grant is over when its session is over, when it is given back, or when the store shows that
it is gone (an administrator broke it). It is no longer held from the moment at which the request to
give it back is sent, because the next one may have it before the answer comes. Its token is what an
outside store must compare: between a check here and a write there, any pause may fall (Kleppmann,
"How to do distributed locking", 2016).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Self

from coordination.backend import Fence, Resource, ResourceEntry
from coordination.errors import NotHeld
from coordination.following import ResourceFollower, find_entry
from coordination.scopes import CancelScope, EndSignal
from coordination.session import FINAL, Session
from coordination.types import Token


class HeldGrant:
    """What `Term` and `Grant` have in common."""

    def __init__(self, resource: Resource, entry: ResourceEntry, session: Session) -> None:
        """`entry` is granted."""
        self.id = entry.id
        self.token: Token = entry.token
        self.session = session
        self.full_resource = resource
        """With the client's namespace, as the backend knows it."""
        self.signal = EndSignal(session.signal)
        self._follower: ResourceFollower | None = None
        self._since = entry.revision
        self._given_up = False

    @property
    def lost(self) -> asyncio.Event:
        """Set when the grant is over, for whatever reason."""
        return self.signal.over

    @property
    def held(self) -> bool:
        """Whether the grant is certainly still ours. A pause may fall right behind the answer."""
        ended = self._given_up or self.signal.over.is_set()
        return self.session.state not in FINAL and not ended

    @property
    def deadline(self) -> float:
        """The monotonic time up to which nobody else can have the grant."""
        return self.session.deadline

    @property
    def fence(self) -> Fence:
        """The condition that this grant is the present one; a write with it is refused later."""
        return Fence(self.full_resource, self.token)

    def check(self) -> None:
        """Raise SessionLost or NotHeld if the grant is over, also if only just now."""
        self.session.check()
        self.signal.check()
        if self._given_up:
            raise self.given_back()

    def given_back(self) -> NotHeld:
        """Return the error that says so."""
        return NotHeld(f"the grant of {self.full_resource.name!r} was given back")

    def give_up(self) -> None:
        """Hold it no longer, because the client is about to ask for its removal."""
        self._given_up = True
        self.unwatch()

    def scope(self) -> CancelScope:
        """Cancel the body of an `async with` when the grant is over, before another can have it."""
        return CancelScope(self.signal, self.check)

    @asynccontextmanager
    async def within(self, drop: Callable[[], Awaitable[None]]) -> AsyncIterator[Self]:
        """Hold it within the body, which is cancelled when the grant is over; `drop` it at the end.

        Raises in the body's place SessionLost, or NotHeld if the session lives all the same.
        """
        try:
            async with self.scope():
                yield self
        except NotHeld:
            await self.session.verify()
            raise
        finally:
            await drop()

    def watch_over(self, follower: ResourceFollower) -> None:
        """Notice in the resource's state that the grant is gone."""
        self._follower = follower
        follower.on_change(self._look)
        self.signal.on_end(self.unwatch)

    def unwatch(self) -> None:
        """Look at the resource's state no longer."""
        if self._follower is not None:
            self._follower.forget(self._look)
            self._follower = None

    def _look(self) -> None:
        assert self._follower is not None
        state = self._follower.state
        if state is None or state.revision < self._since:
            return
        mine = find_entry(state, self.id, self.session.id)
        if mine is None or not mine.granted or mine.token != self.token:
            self.signal.end(NotHeld(f"the grant of {self.full_resource.name!r} was taken away"))
