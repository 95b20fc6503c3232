"""Compares the states of the controllers: digests of states at common offsets ride on heartbeats.

Each controller keeps (offset, chain hash, state hash) of its newest batches. It also keeps them for
the first batch end at or past each multiple of 1,024 offsets. That is the same batch on every node,
so two nodes find an offset that both know, even if one lags far behind. Inside an open transaction
there is no state hash, because its branch isn't published.

A controller whose state differs from that of a majority stops serving until it is restarted. Its
hashes may become equal to the others' again when the wrong value is overwritten, but the cause is
still there. If two differ and there is no third to compare with, both stop. Once a third agrees
with one of them, that one goes on.
"""

import struct
from bisect import bisect_right
from collections import deque
from hashlib import sha256
from typing import NamedTuple

EVERY_OFFSETS = 1024
COARSE_KEPT = 4096
NEWEST_KEPT = 256
_ENTRY = struct.Struct(">q16s")
_FORMAT = b"\x01"
_NEWEST_SENT = 4
_RECENT_SENT = 4
_BACK_STEPS = tuple(8 << step for step in range(12))
"""Also sent: marks from 8 to 16,384 coarse marks back, for a peer that lags."""


class StateMark(NamedTuple):
    """Hashes of log and image at the end of a batch."""

    offset: int
    chain_hash: bytes
    shared: int
    """State hash of what brokers hold too."""
    controllers: int
    """State hash of what only controllers hold."""

    def digest(self) -> bytes:
        """Return 16 bytes that stand for the three hashes."""
        parts = (
            self.chain_hash,
            self.shared.to_bytes(32, "big"),
            self.controllers.to_bytes(32, "big"),
        )
        return sha256(b"".join(parts)).digest()[:16]


class StateMarks:
    """The marks that this node keeps of its own states."""

    def __init__(self) -> None:
        self._newest: deque[StateMark] = deque(maxlen=NEWEST_KEPT)
        self._coarse: deque[StateMark] = deque(maxlen=COARSE_KEPT)
        self._offset = 0

    def restart(self, offset: int) -> None:
        """Forget all marks: an image was loaded at `offset`, a batch end."""
        self._newest.clear()
        self._coarse.clear()
        self._offset = offset

    def note(self, mark: StateMark) -> None:
        """Add the mark behind a batch that was just applied."""
        if mark.offset // EVERY_OFFSETS > self._offset // EVERY_OFFSETS:
            self._coarse.append(mark)
        self._offset = mark.offset
        self._newest.append(mark)

    @property
    def end(self) -> int:
        """The offset of the newest mark."""
        return self._offset

    def at_or_below(self, offset: int) -> StateMark | None:
        """Return the newest mark at or before an offset; None if none is kept."""
        for marks in (self._newest, self._coarse):
            if marks and marks[0].offset <= offset:
                return marks[bisect_right(marks, offset, key=lambda mark: mark.offset) - 1]
        return None

    def at(self, offset: int) -> StateMark | None:
        """Return the mark at exactly this offset; None if none is kept."""
        mark = self.at_or_below(offset)
        if mark is None or mark.offset != offset:
            # The newest marks may begin between two coarse ones.
            found = bisect_right(self._coarse, offset, key=lambda mark: mark.offset) - 1
            mark = self._coarse[found] if found >= 0 else None
        return mark if mark is not None and mark.offset == offset else None

    def encode(self) -> bytes:
        """Encode some marks for the other controllers, in at most 512 bytes."""
        coarse = self._coarse
        steps = (*range(1, _RECENT_SENT + 1), *_BACK_STEPS)
        chosen = [
            self._newest[-back] for back in range(1, min(_NEWEST_SENT, len(self._newest)) + 1)
        ]
        chosen += [coarse[-back] for back in steps if back <= len(coarse)]
        entries = {mark.offset: mark.digest() for mark in chosen}
        return _FORMAT + b"".join(_ENTRY.pack(o, d) for o, d in sorted(entries.items()))


class _Peer:
    def __init__(self) -> None:
        self.told: dict[int, bytes] = {}
        self.same_at = -1
        """The newest common offset at which the states were equal; -1 if there was none."""
        self.differs_at = -1
        """The first common offset at which they differed; -1 if they never did."""


class DigestComparison:
    """Compares this node's states with those that peers have sent."""

    def __init__(self, node_id: int, marks: StateMarks) -> None:
        self._node_id = node_id
        self._marks = marks
        self._peers: dict[int, _Peer] = {}
        self._wrong = ""

    @property
    def wrong(self) -> bool:
        """A majority held another state. This stays true until the process is restarted."""
        return bool(self._wrong)

    @property
    def agreed_at(self) -> int:
        """The newest offset at which a peer's state was equal, before any differed; -1 if none."""
        first = min((p.differs_at for p in self._peers.values() if p.differs_at >= 0), default=-1)
        agreed = [p.same_at for p in self._peers.values() if first < 0 or p.same_at < first]
        return max(agreed, default=-1)

    def on_digest(self, node_id: int, digest: bytes) -> None:
        """A peer's digest arrived. Digests of unknown formats are ignored."""
        if digest[:1] != _FORMAT or (len(digest) - 1) % _ENTRY.size:
            return
        peer = self._peers.setdefault(node_id, _Peer())
        peer.told = dict(_ENTRY.iter_unpack(digest[1:]))
        for offset in sorted(peer.told):
            mark = self._marks.at(offset)
            if mark is not None:
                self._compare(peer, mark)

    def on_mark(self, mark: StateMark) -> None:
        """This node has reached an offset. Compare with peers that sent its digest before."""
        for peer in self._peers.values():
            if mark.offset in peer.told:
                self._compare(peer, mark)

    def verdict(self, voters: tuple[int, ...]) -> str:
        """Return why this node must not serve; empty if it may."""
        if self._wrong:
            return self._wrong
        differing = [p for p in voters if self._differs(p)]
        if not differing:
            return ""
        first = min(self._peers[p].differs_at for p in differing)
        agreeing = [
            p
            for p in voters
            if p in self._peers and not self._differs(p) and self._peers[p].same_at >= first
        ]
        if 1 + len(agreeing) > len(voters) // 2:
            return ""
        names = ", ".join(str(p) for p in differing)
        if len(differing) > len(voters) // 2:
            self._wrong = (
                f"at offset {first} the state of this controller ({self._node_id}) differs from "
                f"that of controllers {names}, the majority: this one is wrong, until it is "
                f"started again and has built its state from the log"
            )
            return self._wrong
        return (
            f"at offset {first} the states of this controller ({self._node_id}) and of controller "
            f"{names} differ, and there is no third one to tell which is wrong"
        )

    def differing(self) -> tuple[int, ...]:
        """Return the peers whose state differs from ours."""
        return tuple(sorted(p for p in self._peers if self._differs(p)))

    def _differs(self, node_id: int) -> bool:
        peer = self._peers.get(node_id)
        return peer is not None and peer.differs_at >= 0

    def _compare(self, peer: _Peer, mark: StateMark) -> None:
        if peer.told[mark.offset] != mark.digest():
            if peer.differs_at < 0 or mark.offset < peer.differs_at:
                peer.differs_at = mark.offset
            return
        peer.same_at = max(peer.same_at, mark.offset)
        if peer.differs_at >= 0 and mark.offset > peer.differs_at:
            # The states can only be equal again if the peer was restarted on another folder.
            peer.differs_at = -1
