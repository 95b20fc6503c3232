"""Sessions: a row with a ttl, renewed by lightweight transactions, that ends once and for good.

Rule: whoever finds a session's row gone writes that it has ended, by a transaction, before anything
is taken from the session. A heartbeat that was on its way can't bring it back then. So two can't
both be right about one session.

Cassandra counts ttls in whole seconds of a replica's clock, and may end a row up to a second early.
So a row gets two seconds more than the session.
"""

import asyncio
import math
from collections.abc import Iterable
from typing import Final

from coordination.backends.cassandra.link import CassandraLink
from coordination.errors import SessionLost
from coordination.types import SessionId
from coordination.until import ReplyLost, Until
from runtime.randomness import Random

MORE_S: Final = 2
_ENDED_S: Final = 86_400
"""So long it stays written that a session has ended: longer than any message is on its way."""


class CassandraSessions:
    """All sessions of one backend's store."""

    def __init__(self, link: CassandraLink, dice: Random) -> None:
        self._link = link
        self._dice = dice

    async def begin(self, session: SessionId, ttl_s: float, until: Until) -> None:
        beat = self._beat()
        while True:
            until.check()
            try:
                found = await self._link.write(
                    [("begin_session", (session, beat, _row_ttl(ttl_s)))], until
                )
            except ReplyLost:
                continue
            until.lost = False
            if found is not None and found["beat"] != beat:
                raise SessionLost(f"the session {session} was there already")
            return

    async def renew(self, session: SessionId, ttl_s: float, until: Until) -> None:
        """Raises SessionLost."""
        while True:
            until.check()
            try:
                found = await self._link.write(
                    [("renew_session", (_row_ttl(ttl_s), self._beat(), session))], until
                )
            except ReplyLost:
                # A heartbeat may be sent twice.
                continue
            until.lost = False
            if found is not None:
                raise SessionLost(f"the session {session} is over")
            return

    async def end(self, session: SessionId, until: Until) -> None:
        """End a session, also one that is over."""
        while True:
            until.check()
            try:
                found = await self._link.write([("end_session", (_ENDED_S, session))], until)
                if found is not None and found.get("ended") is None:
                    await self._link.write([("mark_ended", (session, _ENDED_S))], until)
            except ReplyLost:
                continue
            return

    async def dead_of(self, sessions: Iterable[SessionId], until: Until) -> set[SessionId]:
        """Which of them are over. Those whose time has passed are so from now on."""
        asked = sorted(set(sessions))
        over = await asyncio.gather(*(self._is_over(session, until) for session in asked))
        return {session for session, dead in zip(asked, over, strict=True) if dead}

    async def _is_over(self, session: SessionId, until: Until) -> bool:
        rows = await self._link.read("see_session", (session,), until, serial=False)
        if rows and rows[0]["ended"] is not None:
            return bool(rows[0]["ended"])
        while True:
            until.check()
            try:
                found = await self._link.write([("mark_ended", (session, _ENDED_S))], until)
            except ReplyLost:
                continue
            until.lost = False
            return found is None or bool(found["ended"])

    def _beat(self) -> str:
        return f"{self._dice.getrandbits(64):016x}"


def _row_ttl(ttl_s: float) -> int:
    return math.ceil(ttl_s) + MORE_S
