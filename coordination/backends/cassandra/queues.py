"""Groups, elections and locks: rows of a space, whose order and grants are written down.

Rule: nobody has a grant because of what a reader concludes; a grant is a change of the space with a
number of its own, which is the token. Whoever reads a resource first removes the entries of ended
sessions and grants what is next, in one change. So a write under an older grant's fence, which was
decided before that, is refused with the old epoch.
"""

from dataclasses import replace

from coordination.backend import (
    Claim,
    EntryExists,
    Fence,
    Resource,
    ResourceEntries,
    ResourceEntry,
)
from coordination.backends.cassandra.sessions import CassandraSessions
from coordination.backends.cassandra.spaces import CassandraSpaces, Draft, Row, space_of
from coordination.errors import Fenced, NotHeld, SessionLost
from coordination.types import Revision, SessionId, Token
from coordination.until import Until


class CassandraQueues:
    """The resources of one store."""

    def __init__(self, spaces: CassandraSpaces, sessions: CassandraSessions) -> None:
        self._spaces = spaces
        self._sessions = sessions

    async def read(self, resource: Resource, until: Until) -> ResourceEntries:
        """Read a resource, and bring it up to date first."""
        space = space_of(resource.name)

        async def decide(draft: Draft) -> ResourceEntries:
            rows = await self._live(draft, resource, until)
            rows = _granted(draft, resource, rows)
            return ResourceEntries(draft.reached, tuple(map(_entry, rows)))

        return await self._spaces.change(space, decide, until)

    async def enter(self, claim: Claim, until: Until) -> ResourceEntry:
        """Raises EntryExists, SessionLost."""
        resource, id_ = claim.resource, claim.id.encode()

        async def decide(draft: Draft) -> ResourceEntry:
            rows = await self._live(draft, resource, until)
            there = next((row for row in rows if row.id == id_), None)
            if there is not None and there.session != claim.session:
                raise EntryExists(f"{claim.id!r} is taken", entry=_entry(there))
            if there is None:
                if await self._sessions.dead_of([claim.session], until):
                    raise SessionLost(f"the session {claim.session} is over")
                place = draft.number()
                there = Row(
                    "e",
                    _name(resource),
                    id_,
                    claim.data,
                    created=place,
                    modified=place,
                    session=claim.session,
                    shared=claim.shared,
                )
                draft.write(there)
                rows.append(there)
            elif there.value != claim.data:
                rows.remove(there)
                there = replace(there, value=claim.data, modified=draft.number())
                draft.write(there)
                rows.append(there)
            rows = _granted(draft, resource, rows)
            return _entry(next(row for row in rows if row.id == id_))

        return await self._spaces.change(space_of(resource.name), decide, until)

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes, until: Until
    ) -> Revision:
        """Raises NotHeld."""

        async def decide(draft: Draft) -> Revision:
            rows = await self._live(draft, resource, until)
            for row in rows:
                if row.id == id_.encode() and row.session == session:
                    changed = replace(row, value=data, modified=draft.number())
                    draft.write(changed)
                    return Revision(changed.modified)
            raise NotHeld(f"the session has no entry {id_!r} in {_name(resource)!r}")

        return await self._spaces.change(space_of(resource.name), decide, until)

    async def leave(
        self,
        resource: Resource,
        id_: str,
        session: SessionId,
        token: Token | None,
        until: Until,
    ) -> bool:
        """Remove a session's own entry."""
        removing = False

        async def decide(draft: Draft) -> bool:
            nonlocal removing
            rows = await self._live(draft, resource, until)
            for row in rows:
                own = row.id == id_.encode() and row.session == session
                if own and (token is None or _entry(row).token == token):
                    removing = True
                    draft.remove(row)
                    rows.remove(row)
                    draft.number()
                    _granted(draft, resource, rows)
                    return True
            # After a lost reply it was this call that removed it.
            return removing and until.lost

        return await self._spaces.change(space_of(resource.name), decide, until)

    async def break_grant(self, resource: Resource, until: Until) -> bool:
        """Remove what is granted, and grant what is next."""

        async def decide(draft: Draft) -> bool:
            rows = await self._live(draft, resource, until)
            broken = [row for row in rows if row.token]
            for row in broken:
                draft.remove(row)
                rows.remove(row)
                draft.number()
            _granted(draft, resource, rows)
            return bool(broken)

        return await self._spaces.change(space_of(resource.name), decide, until)

    async def any_ended(self, seen: ResourceEntries, until: Until) -> bool:
        """Whether a session of these entries is over."""
        return bool(await self._sessions.dead_of({entry.session for entry in seen.entries}, until))

    async def check_fence(self, fence: Fence, until: Until, index: int) -> None:
        """Within a change of the resource's space. Raises Fenced."""
        found = await self._spaces.resource(
            space_of(fence.resource.name), _name(fence.resource), until
        )
        granted = [row for row in found if row.token]
        dead = await self._sessions.dead_of([SessionId(row.session) for row in granted], until)
        live = [row for row in granted if row.session not in dead]
        if all(row.token != fence.token for row in live):
            raise Fenced(
                f"token {fence.token} isn't the present grant of {fence.resource.name!r}",
                current_token=Token(live[0].token) if live else None,
                index=index,
            )

    async def _live(self, draft: Draft, resource: Resource, until: Until) -> list[Row]:
        """The rows of live sessions, in order; those of ended ones are removed."""
        rows = await self._spaces.resource(draft.space, _name(resource), until)
        dead = await self._sessions.dead_of([SessionId(row.session) for row in rows], until)
        for row in rows:
            if row.session in dead:
                draft.remove(row)
                draft.number()
        return [row for row in rows if row.session not in dead]


def _granted(draft: Draft, resource: Resource, rows: list[Row]) -> list[Row]:
    """Grant what is next, each with a number of its own. Returns the rows in their order."""
    rows = sorted(rows, key=lambda row: row.created)
    for place, row in enumerate(rows):
        first = resource.kind == "group" or place == 0
        together = resource.kind == "lock" and all(other.shared for other in rows[: place + 1])
        if (first or together) and not row.token:
            token = draft.number()
            rows[place] = replace(row, token=token, modified=token)
            draft.write(rows[place])
    return rows


def _entry(row: Row) -> ResourceEntry:
    return ResourceEntry(
        id=row.id.decode(),
        data=row.value,
        session=SessionId(row.session),
        token=Token(row.token or row.created),
        revision=Revision(row.modified),
        granted=bool(row.token),
        shared=row.shared,
    )


def _name(resource: Resource) -> str:
    return f"{resource.kind}:{resource.name}"
