"""How a commit on etcd proves that it was made, so that a lost reply can be found out.

Rule: each commit also writes one key, its proof, under the condition that the proof has not changed
since. A commit that is sent twice is therefore made once. Who finds the proof written knows that
the commit was made, and at which revision.

A commit that names its request id has the proof `requests/<id>`, which etcd keeps for some minutes.
Any other commit of a session takes one of the session's slots, `attempts/<session>/<number>`, and
gives it back. So a session has as many slots as it ever had commits under way at once.
"""

from dataclasses import dataclass
from typing import Final

from coordination.backend import Commit
from coordination.backends.etcd import messages as wire
from coordination.backends.etcd.layout import EtcdLayout
from coordination.backends.etcd.sessions import EtcdSessions, lease_of
from coordination.types import SessionId
from runtime.clock import Clock
from runtime.randomness import Random

_KEPT_S: Final = 600
"""How long etcd keeps a request id at most, and at least half of it."""
REFUSED: Final = b"refused"
"""Stands in the proof of a commit that was given up, so that no late try is carried out."""


@dataclass(slots=True)
class Proof:
    """The key that a commit writes with its changes."""

    key: bytes
    value: bytes
    lease: int
    revision: int
    """Of the key's last change, as far as we know; 0: it isn't there."""

    @property
    def condition(self) -> wire.Compare:
        """Nobody wrote the proof since."""
        return wire.changed_at(self.key, self.revision)

    @property
    def step(self) -> wire.RequestOp:
        """Write the proof."""
        return wire.put_key(self.key, self.value, self.lease)


class EtcdProofs:
    """Gives each commit its proof."""

    def __init__(
        self, sessions: EtcdSessions, layout: EtcdLayout, clock: Clock, dice: Random
    ) -> None:
        self._sessions = sessions
        self._layout = layout
        self._clock = clock
        self._dice = dice
        self._free: dict[SessionId, list[Proof]] = {}
        self._slots: dict[SessionId, int] = {}
        self._lease = 0
        self._lease_until = 0.0

    async def begin(self, commit: Commit) -> Proof:
        """Return the proof for a commit."""
        if commit.request_id is None and commit.session is not None:
            return self._slot(commit.session)
        request_id = commit.request_id or f"{self._dice.getrandbits(128):032x}"
        lease = await self._kept()
        return Proof(self._layout.request(request_id), b"made", lease, 0)

    def finish(self, commit: Commit, proof: Proof) -> None:
        """Take back a proof of which we know whether it was written."""
        if commit.request_id is None and commit.session in self._slots:
            self._free[commit.session].append(proof)

    def forget(self, session: SessionId) -> None:
        """The session is over, and etcd removed its slots."""
        self._free.pop(session, None)
        self._slots.pop(session, None)

    def drop_lease(self) -> None:
        """The lease of request ids is over: the next commit begins another one."""
        self._lease_until = 0.0

    def _slot(self, session: SessionId) -> Proof:
        free = self._free.setdefault(session, [])
        if free:
            proof = free.pop()
        else:
            number = self._slots[session] = self._slots.get(session, 0) + 1
            proof = Proof(self._layout.attempt(session, number), b"", lease_of(session), 0)
        proof.value = b"%016x" % self._dice.getrandbits(64)
        return proof

    async def _kept(self) -> int:
        now = self._clock.monotonic()
        if now >= self._lease_until:
            # Commits that begin meanwhile may make one more lease; it ends by itself.
            self._lease = await self._sessions.grant(_KEPT_S)
            self._lease_until = now + _KEPT_S / 2
        return self._lease
