"""Members, candidates and waiters on Consul: keys that end with their session.

Rule: a resource's queue is its keys in order of their create index, and that index is the token. So
whoever is first stays first until it leaves, and each later grant has a larger token. Consul's own
locks are one key that one session has; here each claim is a key of its own, which only its session
may write. So Consul's lock-delay, which is about a key that changes hands, is 0.
"""

from coordination.backend import (
    Claim,
    EntryExists,
    Resource,
    ResourceEntries,
    ResourceEntry,
)
from coordination.backends.consul import messages as wire
from coordination.backends.consul.gateway import ConsulGateway
from coordination.backends.consul.layout import ConsulLayout, entry_value
from coordination.backends.consul.sessions import lost
from coordination.errors import NotHeld
from coordination.types import Revision, SessionId, Token


class ConsulResources:
    """Enters, reads and leaves resources."""

    def __init__(self, gateway: ConsulGateway, layout: ConsulLayout) -> None:
        self._gateway = gateway
        self._layout = layout

    async def entries(self, resource: Resource) -> ResourceEntries:
        """Read a resource."""
        found = await self._gateway.read(self._layout.resource(resource), recurse=True)
        return self._layout.entries(resource, found.keys, found.revision)

    async def enter(self, claim: Claim) -> ResourceEntry:
        """Enter a resource, or change the data of an own entry. Raises EntryExists, SessionLost."""
        tried = False
        while True:
            held = await self._find(claim.resource, claim.id)
            if held is not None and held.session != claim.session:
                raise EntryExists(f"session {held.session} has {claim.id!r}", entry=held)
            if held is not None and tried and held.data == claim.data:
                return held
            index = held.revision if held is not None else 0
            if await self._write(claim, index):
                entered = await self._find(claim.resource, claim.id)
                if entered is None or entered.session != claim.session:
                    raise lost(claim.session)
                return entered
            tried = True

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        """Change an own entry's data. Raises NotHeld."""
        tried = False
        while True:
            held = await self._find(resource, id_)
            if held is None or held.session != session:
                raise NotHeld(f"session {session} has no entry {id_!r} in {resource.name!r}")
            if tried and held.data == data:
                return held.revision
            changed = await self._write(
                Claim(resource, id_, data, session, shared=held.shared), held.revision
            )
            if changed:
                return Revision(changed)
            tried = True

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        """Remove an own entry. False: there was none, or with another token."""
        while True:
            held = await self._find(resource, id_)
            if held is None or held.session != session or token not in {None, held.token}:
                return False
            if await self._delete(resource, held):
                return True

    async def break_grant(self, resource: Resource) -> bool:
        """Remove all granted entries. False: there were none."""
        broken = False
        for entry in (await self.entries(resource)).entries:
            if entry.granted:
                broken |= await self._delete(resource, entry)
        return broken

    async def _find(self, resource: Resource, id_: str) -> ResourceEntry | None:
        everyone = await self.entries(resource)
        return next((entry for entry in everyone.entries if entry.id == id_), None)

    async def _write(self, claim: Claim, index: int) -> int:
        """Write an entry that has this index, 0 for none; return its new one, 0: it changed."""
        key = self._layout.entry(claim.resource, claim.id)
        value = entry_value(claim.data, shared=claim.shared)
        write = wire.KeyStep("lock", key, Value=value, Session=claim.session)
        reply, _ = await self._gateway.transact([wire.is_at(key, index), write])
        if not reply.Errors:
            return reply.index_of(key)
        if any("invalid session" in each.What for each in reply.Errors):
            raise lost(claim.session)
        return 0

    async def _delete(self, resource: Resource, held: ResourceEntry) -> bool:
        """Return whether this call removed the entry."""
        key = self._layout.entry(resource, held.id)
        delete = wire.KeyStep("delete-cas", key, Index=held.revision)
        reply, repeated = await self._gateway.transact([wire.is_at(key, held.revision), delete])
        # The entry was there when the call began. If the reply to a first try was lost, that try
        # removed it.
        return not reply.Errors or (repeated and await self._is_gone(key))

    async def _is_gone(self, key: str) -> bool:
        return not (await self._gateway.read(key)).keys
