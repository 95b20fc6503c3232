"""Leader election (KIP-30's LeaderElectionClient): candidates in a queue, the first one leads.

Rule: a leader's body is cancelled before anyone else can lead. Its session's deadline is earlier
than the store's expiry, and leaving comes after the body. Candidates lead in the order in which
they were nominated.

    async with coordinator.election("reports").campaign("worker-1") as term:
        while True:
            await coordinator.storage.upsert("reports/last", make_report(), fence=term)
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from coordination.backend import Claim, Resource, ResourceEntry
from coordination.claims import Claims
from coordination.errors import CandidateExists, NotHeld
from coordination.holding import HeldGrant
from coordination.interpreters import LeaderInterpreter, leader_of
from coordination.listeners import Listeners, OnLeader
from coordination.session import Session
from coordination.types import Leader, LeaderEvent, Revision, Token
from coordination.watches import Watch, Watches


class Term(HeldGrant):
    """One leadership: from winning to resigning, or to the session's end."""

    def __init__(
        self, resource: Resource, entry: ResourceEntry, session: Session, claims: Claims
    ) -> None:
        super().__init__(resource, entry, session)
        self._claims = claims

    async def proclaim(self, data: bytes | str) -> Revision:
        """Change the leader's data; the token stays. Raises NotHeld, SessionLost."""
        self.check()
        calls = self._claims.calls
        value = calls.data(data)
        return await calls.call(
            lambda session: calls.backend.change(self.full_resource, self.id, session, value),
            changes=True,
        )

    async def resign(self) -> bool:
        """Stop leading; stop the leader's duties first. False: this term was over already."""
        if self.signal.over.is_set():
            return False
        return await self._claims.give_back(self)


class LeaderElectionClient:
    """The election of one service's leader."""

    def __init__(
        self, service: str, claims: Claims, watches: Watches, listeners: Listeners
    ) -> None:
        self.service = service
        self._claims = claims
        self._calls = claims.calls
        self._watches = watches
        self._listeners = listeners
        self._key = self._calls.resource("election", service)
        self._terms: dict[str, Term] = {}
        self._campaigns: set[str] = set()

    @property
    def resource(self) -> Resource:
        """What `fence=` with a bare token names as `resource=`."""
        return Resource("election", self.service)

    async def get_leader(self) -> Leader | None:
        """Return who leads now; linearizable where the backend is."""
        state = await self._calls.call(lambda _: self._calls.backend.entries(self._key))
        return leader_of(state)

    async def candidates(self) -> Sequence[Leader]:
        """Return all candidates in the order in which they will lead; the first one leads."""
        state = await self._calls.call(lambda _: self._calls.backend.entries(self._key))
        return tuple(Leader(e.id, e.data, e.token) for e in state.entries)

    async def nominate(self, candidate: str, data: bytes | str = b"") -> Term | None:
        """Make a candidate eligible, and return its term if it leads now.

        The candidate stays in the queue until it withdraws or the session ends. A second call by
        the same session changes the data. Raises CandidateExists.
        """
        id_, value = self._calls.id(candidate), self._calls.data(data)
        claim = Claim(self._key, id_, value, self._calls.session.id)
        entry = await self._calls.call(self._claims.entering(claim), changes=True)
        if not entry.granted:
            return None
        term = self._terms.get(candidate)
        if term is None or term.token != entry.token or not term.held:
            term = self._claims.hold(self._term(self._key, entry, self._calls.session))
        return term

    async def withdraw(self, candidate: str) -> bool:
        """Remove a candidacy of this session, also a leading one. False: there was none."""
        if (term := self._terms.pop(candidate, None)) is not None:
            term.signal.end(NotHeld(f"{candidate!r} withdrew"))
        return await self._calls.call(
            lambda session: self._calls.backend.leave(self._key, candidate, session, None),
            changes=True,
        )

    async def resign(
        self, leader: str, *, token: Token | None = None, stay_candidate: bool = False
    ) -> bool:
        """Stop leading; stop the leader's duties first. False: this session doesn't lead as that.

        `token`: resign only the term with this token. `stay_candidate`: queue up again, as last.
        """
        state = await self._calls.call(lambda _: self._calls.backend.entries(self._key))
        mine = next((e for e in state.entries if e.granted and e.id == leader), None)
        if mine is None or mine.session != self._calls.session.id:
            return False
        if token is not None and mine.token != token:
            return False
        # Nobody holds a term whose nomination's answer was lost, so there may be none to end.
        term = self._terms.get(leader)
        if term is None or term.token != mine.token:
            term = self._term(self._key, mine, self._calls.session)
        left = await self._claims.give_back(term)
        if stay_candidate:
            await self.nominate(leader, mine.data)
        return left

    @asynccontextmanager
    async def campaign(
        self, candidate: str, data: bytes | str = b"", *, timeout: float | None = None
    ) -> AsyncIterator[Term]:
        """Wait for the leadership and lead within the body.

        The body is cancelled when the term ends, and SessionLost (or NotHeld) is raised then. When
        the body ends, the candidate resigns. Raises DeadlineExceeded after `timeout` seconds
        without leading, CandidateExists, SessionLost.
        """
        term = await self.acquire(candidate, data, timeout=timeout)
        async with term.within(lambda: self.drop(term)):
            yield term

    async def acquire(
        self, candidate: str, data: bytes | str = b"", *, timeout: float | None = None
    ) -> Term:
        """As `campaign`, without a body: the caller heeds `term.lost`, and calls `drop`."""
        if candidate in self._campaigns:
            raise CandidateExists(f"{candidate!r} campaigns for {self.service!r} already")
        self._campaigns.add(candidate)
        try:
            id_, value = self._calls.id(candidate), self._calls.data(data)
            return await self._claims.win(self._term, self._key, id_, value, timeout_s=timeout)
        except BaseException:
            self._campaigns.discard(candidate)
            raise

    async def drop(self, term: Term) -> None:
        """Resign whatever happens; if the store doesn't answer, in the background."""
        self._campaigns.discard(term.id)
        await self._claims.drop(term)

    def watch(self, *, after: Revision | None = None, strict: bool = False) -> Watch[LeaderEvent]:
        """Watch who leads. The first event is the present leader, unless `after` is given."""
        interpreter = LeaderInterpreter(self.service)
        return self._watches.open(self._key, interpreter, after=after, strict=strict)

    def add_listener(self, listener: OnLeader) -> None:
        """Call `on_leader_change` with the leader's id or None, now and after each change."""
        self._listeners.add(
            (self._key, "on_leader_change"),
            listener,
            lambda: self._watches.open(self._key, LeaderInterpreter(self.service), buffer=1),
            lambda event: None if event.leader is None else event.leader.id,
        )

    def remove_listener(self, listener: OnLeader) -> None:
        """Don't call this listener any more; an unknown one is ignored."""
        self._listeners.remove((self._key, "on_leader_change"), listener)

    def _term(self, resource: Resource, entry: ResourceEntry, session: Session) -> Term:
        term = self._terms[entry.id] = Term(resource, entry, session, self._claims)

        def over() -> None:
            if self._terms.get(term.id) is term:
                del self._terms[term.id]

        term.signal.on_end(over)
        return term
