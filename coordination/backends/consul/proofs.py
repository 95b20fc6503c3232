"""How a commit on Consul proves that it was made, so that a lost reply can be found out.

Rule: each commit also writes one key, its proof, under the condition that the proof has not changed
since. So a commit that is sent twice is made once, and who finds the proof knows the result.

The proof is bound to a session and ends with it: `attempts/<session>/<number>` to the caller's own,
`requests/<id>` to one that lasts for some minutes and is never renewed.
"""

from dataclasses import dataclass
from typing import Final

from coordination.backend import Commit
from coordination.backends.consul import messages as wire
from coordination.backends.consul.layout import ConsulLayout
from coordination.backends.consul.sessions import ConsulSessions
from coordination.types import SessionId
from runtime.clock import Clock
from runtime.randomness import Random

_KEPT_S: Final = 600
"""Consul keeps a request id for at least half of this, and at most for twice as long."""
_REFUSED: Final = b"refused"


@dataclass(slots=True)
class WrittenProof:
    """The key that a commit writes with its changes."""

    key: str
    tag: bytes
    """What says that this commit was made; what it deleted follows."""
    session: SessionId
    index: int
    """Of the key's last change, as far as we know; 0: it isn't there."""

    def steps(self, applied: tuple[bool, ...]) -> list[wire.KeyStep]:
        """Return the steps that write the proof, if nobody did."""
        value = self.tag + b" " + bytes(b"01"[each] for each in applied)
        return self._steps(value)

    def refusing_steps(self) -> list[wire.KeyStep]:
        """Return the steps after which no late try of this commit is made."""
        return self._steps(_REFUSED)

    def applied(self, found: wire.ConsulKey | None) -> tuple[bool, ...] | None:
        """Return what the commit did, by operation; None: it isn't made."""
        if found is None or not found.content.startswith(self.tag + b" "):
            return None
        return tuple(each == ord("1") for each in found.content[len(self.tag) + 1 :])

    def _steps(self, value: bytes) -> list[wire.KeyStep]:
        write = wire.KeyStep("lock", self.key, Value=value, Session=self.session)
        return [wire.is_at(self.key, self.index), write]


class ConsulProofs:
    """Gives each commit its proof."""

    def __init__(
        self, sessions: ConsulSessions, layout: ConsulLayout, clock: Clock, dice: Random
    ) -> None:
        self._sessions = sessions
        self._layout = layout
        self._clock = clock
        self._dice = dice
        self._free: dict[SessionId, list[WrittenProof]] = {}
        self._slots: dict[SessionId, int] = {}
        self._kept = SessionId("")
        self._kept_until = 0.0

    async def begin(self, commit: Commit) -> WrittenProof:
        """Return the proof for a commit."""
        if commit.request_id is None and commit.session is not None:
            return self._slot(commit.session)
        request_id = commit.request_id or f"{self._dice.getrandbits(128):032x}"
        now = self._clock.monotonic()
        if now >= self._kept_until:
            self._kept = await self._sessions.create(_KEPT_S)
            self._kept_until = now + _KEPT_S / 2
        return WrittenProof(self._layout.request(request_id), b"made", self._kept, 0)

    def finish(self, commit: Commit, proof: WrittenProof) -> None:
        """Take back a proof of which we know whether it was written."""
        if commit.request_id is None and commit.session in self._slots:
            self._free[commit.session].append(proof)

    def forget(self, session: SessionId) -> None:
        """The session is over, and Consul removed its slots."""
        self._free.pop(session, None)
        self._slots.pop(session, None)
        if session == self._kept:
            self._kept_until = 0.0

    def _slot(self, session: SessionId) -> WrittenProof:
        free = self._free.setdefault(session, [])
        if free:
            proof = free.pop()
        else:
            number = self._slots[session] = self._slots.get(session, 0) + 1
            proof = WrittenProof(self._layout.attempt(session, number), b"", session, 0)
        proof.tag = b"%016x" % self._dice.getrandbits(64)
        return proof
