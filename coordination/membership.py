"""Group membership (KIP-30's GroupMembershipClient): who is there, with data that each brings.

Rule: a member is there as long as its session. An id belongs to one session at a time: the same
session may join again and changes the data; another one gets MemberExists while the first lives.
Nobody removes a member of somebody else.
"""

import asyncio
from collections.abc import Mapping
from types import TracebackType

from coordination.backend import Claim, EntryExists
from coordination.calls import SessionCalls
from coordination.errors import CoordinationError, MemberExists, NotHeld
from coordination.interpreters import MembershipInterpreter, members_of
from coordination.listeners import Listeners, OnGroup
from coordination.scopes import EndSignal
from coordination.types import Member, MembershipEvent, Revision, SessionId, Token
from coordination.watches import Watch, Watches


class Membership:
    """A membership of this client; `async with` leaves at the end."""

    def __init__(self, client: "GroupMembershipClient", id_: str, data: bytes) -> None:
        self.id = id_
        self.data = data
        self.token = Token(0)
        self.rejoined = asyncio.Event()
        """Set when a new session joined again by itself; `token` is another one then."""
        self._client = client
        self._session: SessionId | None = None
        self._signal = EndSignal()

    @property
    def lost(self) -> asyncio.Event:
        """Set when the membership is over. Joining again brings a new event."""
        return self._signal.over

    async def leave(self) -> bool:
        """End the membership. False: it was over already."""
        return await self._client.leave(self.id)

    async def __aenter__(self) -> "Membership":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.lost.is_set():
            await self.leave()

    def joined(self, token: Token, signal: EndSignal, session: SessionId) -> None:
        """Note the token, and the session whose end is also this membership's."""
        again = self._session is not None and self._session != session
        self.token = token
        if self._session != session:
            self._session = session
            self._signal = EndSignal(signal)
        if again:
            self.rejoined.set()

    def end(self, error: CoordinationError) -> None:
        """Note that it is over."""
        self._signal.end(error)


class GroupMembershipClient:
    """One group, to join and to observe."""

    def __init__(
        self, group: str, calls: SessionCalls, watches: Watches, listeners: Listeners
    ) -> None:
        self.group = group
        self._calls = calls
        self._watches = watches
        self._listeners = listeners
        self._key = calls.resource("group", group)
        self._mine: dict[str, Membership] = {}
        self._rejoining: set[str] = set()

    @property
    def rejoins(self) -> bool:
        """Whether a membership asks to join again with a new session."""
        return bool(self._rejoining)

    async def join(self, id: str, data: bytes | str = b"", *, rejoin: bool = False) -> Membership:  # noqa: A002 - KIP-30's name
        """Become a member, or change the data of a membership of this session.

        `rejoin`: after a loss join again with a new session, which gives another token and an
        event to all who watch; without it nothing comes back by itself. Raises MemberExists.
        """
        self._calls.id(id)
        membership = self._mine.get(id)
        if membership is None or membership.lost.is_set():
            membership = Membership(self, id, b"")
        membership.data = self._calls.data(data)
        await self._enter(membership)
        self._mine[id] = membership
        (self._rejoining.add if rejoin else self._rejoining.discard)(id)
        return membership

    async def leave(self, id: str) -> bool:  # noqa: A002 - KIP-30's name
        """End a membership of this session. False: it is no member, or somebody else's."""
        self._rejoining.discard(id)
        left = await self._calls.call(
            lambda session: self._calls.backend.leave(self._key, id, session, None), changes=True
        )
        if (membership := self._mine.pop(id, None)) is not None:
            membership.end(NotHeld(f"{id!r} left {self.group!r}"))
        return left

    async def update(self, id: str, data: bytes | str) -> Revision:  # noqa: A002 - KIP-30's name
        """Change the data of a membership of this session. Raises NotHeld."""
        value = self._calls.data(data)
        revision = await self._calls.call(
            lambda session: self._calls.backend.change(self._key, id, session, value),
            changes=True,
        )
        if (membership := self._mine.get(id)) is not None:
            membership.data = value
        return revision

    async def membership_list(self) -> frozenset[str]:
        """Return the members' ids."""
        return frozenset(await self.membership())

    async def membership(self) -> Mapping[str, Member]:
        """Return the members by id; an empty group has none, and is no error."""
        return members_of(await self._calls.call(lambda _: self._calls.backend.entries(self._key)))

    def watch(
        self, *, after: Revision | None = None, strict: bool = False
    ) -> Watch[MembershipEvent]:
        """Watch the members. The first event is the present state, unless `after` is given."""
        interpreter = MembershipInterpreter(self.group, after)
        return self._watches.open(self._key, interpreter, after=after, strict=strict)

    def add_listener(self, listener: OnGroup) -> None:
        """Call `on_group_change` with all ids, now and after each change."""
        self._listeners.add(
            (self._key, "on_group_change"),
            listener,
            lambda: self._watches.open(self._key, MembershipInterpreter(self.group), buffer=1),
            lambda event: frozenset(event.members),
        )

    def remove_listener(self, listener: OnGroup) -> None:
        """Don't call this listener any more; an unknown one is ignored."""
        self._listeners.remove((self._key, "on_group_change"), listener)

    async def rejoin(self) -> None:
        """Join again, with the client's new session, what asked for it."""
        for id_ in sorted(self._rejoining):
            await self._enter(self._mine[id_])

    async def _enter(self, membership: Membership) -> None:
        session = self._calls.session
        claim = Claim(self._key, membership.id, membership.data, session.id)
        try:
            entry = await self._calls.call(lambda _: self._calls.backend.enter(claim), changes=True)
        except EntryExists as error:
            raise MemberExists(
                f"{membership.id!r} is another session's member of {self.group!r}",
                member=member_of(error),
            ) from error
        membership.joined(entry.token, session.signal, session.id)


def member_of(error: EntryExists) -> Member | None:
    """Return the member that is in the way."""
    entry = error.entry
    return None if entry is None else Member(entry.id, entry.data, entry.token, entry.session)
