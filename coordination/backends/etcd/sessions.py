"""Sessions on etcd: each is a lease, and a key that ends with it.

Rule: the client draws the lease's id. So it can repeat a grant whose reply was lost, and a repeated
grant finds the id taken. The key's create revision is the session's epoch.

etcd may grant a longer ttl than it was asked for, and it gives every lease its full ttl again after
a change of leader. So a lease ends no earlier than its granted ttl, and perhaps later.
"""

import contextlib
import math
from typing import Final

from coordination.backend import OpenedSession
from coordination.backends.etcd import messages as wire
from coordination.backends.etcd.gateway import AlreadyDone, EtcdGateway, LeaseGone
from coordination.backends.etcd.layout import EtcdLayout, session_id
from coordination.errors import SessionLost
from coordination.types import Revision, SessionId
from runtime.randomness import Random

_LEASE_BITS: Final = 62


class EtcdSessions:
    """Opens, renews and ends sessions."""

    def __init__(self, gateway: EtcdGateway, layout: EtcdLayout, dice: Random) -> None:
        self._gateway = gateway
        self._layout = layout
        self._dice = dice

    async def open(self, ttl_s: float) -> OpenedSession:
        """Begin a session. A ttl is whole seconds, rounded up."""
        lease = await self.grant(math.ceil(ttl_s))
        session = session_id(lease)
        granted = await self.renew(session)
        key = self._layout.session(session)
        request = wire.TxnRequest(
            compare=(wire.is_absent(key),),
            success=(wire.put_key(key, b"", lease),),
            failure=(wire.read_key(key),),
        )
        try:
            reply, _ = await self._gateway.change("/v3/kv/txn", request, wire.TxnReply)
        except LeaseGone:
            raise lost(session) from None
        if reply.succeeded:
            return OpenedSession(session, granted, Revision(reply.header.revision))
        found = reply.read(0)
        if found is None:
            raise lost(session)
        return OpenedSession(session, granted, Revision(found.create_revision))

    async def grant(self, ttl_s: int) -> int:
        """Begin a lease and return its id."""
        lease = self._dice.getrandbits(_LEASE_BITS) or 1
        request = wire.LeaseGrantRequest(ID=lease, TTL=ttl_s)
        # If it is there already, an earlier try, whose reply was lost, made it.
        with contextlib.suppress(AlreadyDone):
            await self._gateway.change("/v3/lease/grant", request, wire.LeaseReply)
        return lease

    async def renew(self, session: SessionId) -> float:
        """Keep a session alive. Raises SessionLost."""
        request = wire.LeaseRequest(ID=lease_of(session))
        path = "/v3/lease/keepalive"
        reply = await self._gateway.ask(path, request, wire.KeepAliveReply)
        if reply.result.TTL <= 0:
            raise lost(session)
        return float(reply.result.TTL)

    async def end(self, session: SessionId) -> None:
        """End a session, and with it, at the same revision, all its entries."""
        request = wire.LeaseRequest(ID=lease_of(session))
        with contextlib.suppress(LeaseGone):
            await self._gateway.change("/v3/lease/revoke", request, wire.EmptyReply)


def lost(session: SessionId) -> SessionLost:
    """Return the error that says that etcd has no such lease."""
    return SessionLost(f"etcd has ended session {session}")


def lease_of(session: SessionId) -> int:
    """Return a session's lease. Raises SessionLost if the text is no session of etcd."""
    try:
        return int(session, 16)
    except ValueError:
        raise SessionLost(f"{session!r} is no session of etcd") from None
