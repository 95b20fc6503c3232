"""Sessions on Consul: they end by their ttl alone, and take their keys with them.

Rule: Consul draws the id. A repeated request whose reply was lost makes one session more than
needed; it has no keys, and ends by itself. A session's epoch is the index at which it was made.

Consul ends a silent session between one and two ttls after the last renewal, and after a change of
leader it counts anew.
"""

from coordination.backend import OpenedSession
from coordination.backends.consul import messages as wire
from coordination.backends.consul.gateway import ConsulGateway
from coordination.errors import SessionLost, Unavailable
from coordination.types import Revision, SessionId


class ConsulSessions:
    """Opens, renews and ends sessions."""

    def __init__(self, gateway: ConsulGateway) -> None:
        self._gateway = gateway

    async def open(self, ttl_s: float) -> OpenedSession:
        """Begin a session."""
        session = await self.create(ttl_s)
        path = f"/v1/session/info/{session}?consistent"
        found = await self._gateway.ask(path, tuple[wire.SessionReply, ...])
        if not found:
            raise lost(session)
        return OpenedSession(session, ttl_s, Revision(found[0].CreateIndex))

    async def create(self, ttl_s: float) -> SessionId:
        """Begin a session without asking for its epoch."""
        request = wire.SessionRequest(TTL=f"{ttl_s:.3f}s")
        reply = await self._gateway.put("/v1/session/create", wire.encode(request), changes=False)
        made = wire.decode(reply.content, wire.SessionReply)
        if not made.ID:
            raise Unavailable("Consul made a session without an id")
        return SessionId(made.ID)

    async def renew(self, session: SessionId) -> None:
        """Keep a session alive. Raises SessionLost."""
        reply = await self._gateway.put(f"/v1/session/renew/{session}", b"", changes=False)
        if reply.status == 404:
            raise lost(session)

    async def end(self, session: SessionId) -> None:
        """End a session, and with it, at the same index, all its entries."""
        await self._gateway.put(f"/v1/session/destroy/{session}", b"")


def lost(session: SessionId) -> SessionLost:
    """Return the error that says that Consul has no such session."""
    return SessionLost(f"Consul has ended session {session}")
