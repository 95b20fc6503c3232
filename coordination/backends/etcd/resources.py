"""Members, candidates and waiters on etcd: keys that end with their session's lease.

Rule: a resource's queue is its keys in order of their create revision, and that revision is the
token. So whoever is first stays first until it leaves, and each later grant has a larger token.

Every change names what it found: the revision of the entry that it changes or deletes, or that
there is none. So a repeated request does nothing twice, and nobody deletes another's entry.
"""

from coordination.backend import (
    Claim,
    EntryExists,
    Resource,
    ResourceEntries,
    ResourceEntry,
)
from coordination.backends.etcd import messages as wire
from coordination.backends.etcd.gateway import EtcdGateway, LeaseGone
from coordination.backends.etcd.layout import EtcdLayout, entry_value, session_id
from coordination.backends.etcd.sessions import lease_of, lost
from coordination.errors import NotHeld
from coordination.types import Revision, SessionId, Token


class EtcdResources:
    """Enters, reads and leaves resources."""

    def __init__(self, gateway: EtcdGateway, layout: EtcdLayout) -> None:
        self._gateway = gateway
        self._layout = layout

    async def entries(self, resource: Resource, revision: int = 0) -> ResourceEntries:
        """Read a resource, now or as it was at a revision. Raises RevisionCompacted."""
        prefix = self._layout.resource(resource)
        request = wire.RangeRequest(
            key=prefix, range_end=wire.prefix_end(prefix), revision=revision
        )
        reply = await self._gateway.ask("/v3/kv/range", request, wire.RangeReply)
        return self._layout.entries(resource, reply.kvs, revision or reply.header.revision)

    async def enter(self, claim: Claim) -> ResourceEntry:
        """Enter a resource, or change the data of an own entry. Raises EntryExists, SessionLost."""
        key = self._layout.entry(claim.resource, claim.id)
        step = wire.put_key(
            key, entry_value(claim.data, shared=claim.shared), lease_of(claim.session)
        )
        condition = wire.is_absent(key)
        # The same transaction reads the queue: an entry may be granted or not. A group has none,
        # and may be large.
        prefix = key if claim.resource.kind == "group" else self._layout.resource(claim.resource)
        end = b"" if claim.resource.kind == "group" else wire.prefix_end(prefix)
        queue = wire.RequestOp(request_range=wire.RangeRequest(key=prefix, range_end=end))
        while True:
            reply = await self._commit(
                claim.session, condition, (step, queue), (wire.read_key(key), queue)
            )
            entries = self._queue(claim.resource, reply)
            entry = next((each for each in entries if each.id == claim.id), None)
            if reply.succeeded and entry is not None:
                return entry
            held = reply.read(0)
            if held is None:
                condition = wire.is_absent(key)
            elif session_id(held.lease) != claim.session:
                raise EntryExists(f"session {session_id(held.lease)} has {claim.id!r}", entry=entry)
            elif held.value == entry_value(claim.data, shared=claim.shared) and entry is not None:
                return entry
            else:
                condition = wire.changed_at(key, held.mod_revision)

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        """Change an own entry's data. Raises NotHeld."""
        key = self._layout.entry(resource, id_)
        tried = False
        while True:
            held = await self._find(resource, id_)
            if held is None or held.session != session:
                raise NotHeld(f"session {session} has no entry {id_!r} in {resource.name!r}")
            if tried and held.data == data:
                return held.revision  # a try whose reply was lost
            step = wire.put_key(key, entry_value(data, shared=held.shared), lease_of(session))
            condition = wire.changed_at(key, held.revision)
            reply = await self._commit(session, condition, (step,))
            if reply.succeeded:
                return Revision(reply.header.revision)
            tried = True

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        """Remove an own entry. False: there was none, or with another token."""
        if token is None:
            held = await self._find(resource, id_)
            if held is None or held.session != session:
                return False
            token = held.token
        return await self._delete(resource, id_, token, session)

    async def break_grant(self, resource: Resource) -> bool:
        """Remove all granted entries. False: there were none."""
        broken = False
        for entry in (await self.entries(resource)).entries:
            if entry.granted:
                broken |= await self._delete(resource, entry.id, entry.token, entry.session)
        return broken

    def _queue(self, resource: Resource, reply: wire.TxnReply) -> tuple[ResourceEntry, ...]:
        """Return what the second step of a transaction read of a resource."""
        found = reply.responses[1].response_range
        keys = found.kvs if found is not None else ()
        return self._layout.entries(resource, keys, reply.header.revision).entries

    async def _find(self, resource: Resource, id_: str) -> ResourceEntry | None:
        if resource.kind != "group":
            # Whether an entry is granted depends on those before it.
            everyone = await self.entries(resource)
            return next((entry for entry in everyone.entries if entry.id == id_), None)
        request = wire.RangeRequest(key=self._layout.entry(resource, id_))
        reply = await self._gateway.ask("/v3/kv/range", request, wire.RangeReply)
        alone = self._layout.entries(resource, reply.kvs, reply.header.revision)
        return alone.entries[0] if alone.entries else None

    async def _delete(self, resource: Resource, id_: str, token: Token, session: SessionId) -> bool:
        """Return whether this call removed the entry with this token."""
        key = self._layout.entry(resource, id_)
        own = wire.Compare(key=key, target="LEASE", lease=lease_of(session))
        request = wire.TxnRequest(
            compare=(wire.created_at(key, token), own), success=(wire.delete_key(key),)
        )
        reply, repeated = await self._gateway.change("/v3/kv/txn", request, wire.TxnReply)
        # If the reply to a first try was lost, that try removed the entry. Or the entry was gone
        # before; then it is as the caller wants it, too.
        return reply.succeeded or repeated

    async def _commit(
        self,
        session: SessionId,
        condition: wire.Compare,
        steps: tuple[wire.RequestOp, ...],
        otherwise: tuple[wire.RequestOp, ...] = (),
    ) -> wire.TxnReply:
        request = wire.TxnRequest(compare=(condition,), success=steps, failure=otherwise)
        try:
            reply, _ = await self._gateway.change("/v3/kv/txn", request, wire.TxnReply)
        except LeaseGone:
            raise lost(session) from None
        return reply
