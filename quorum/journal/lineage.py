"""Detects that a data folder was replaced by an older copy of itself.

Each process start, and each repair, begins an *incarnation*. It draws a random id and writes it to
the journal before the node's vote counts. The *lineage* lists the incarnations, each with the
position up to which the journal holds what that incarnation made durable.

Rule: peers remember the newest id and durable position that a node told them (`guard.memory`), and
later ask: does your lineage hold that incarnation up to that position? An older copy does not.
Either the incarnation began after the copy was made, so the copy does not know its id. Or the copy
ends within it, so the copy's next incarnation begins below the position. Positions alone would not
do: a copy that is written to for long reaches the same positions again.

A loss that was found is written into the lineage too, so it is found once.

Each id begins with a *rank*. A repair takes a rank above all that the node has heard of. Peers
ignore what they remember of lower ranks, because the repair has restored everything that was
promised before it.
"""

from collections.abc import Iterable

DRAWN_BYTES = 8
_RANK_BYTES = 4
_RANK_MAX = (1 << 8 * _RANK_BYTES) - 1
INCARNATION_BYTES = _RANK_BYTES + DRAWN_BYTES
KEPT = 64
"""How many incarnations are remembered by id."""
OPEN = 2**62
"""The end of the running incarnation."""


class Lineage:
    """Incarnations in their order, each with the position up to which the journal holds it."""

    def __init__(self, incarnations: Iterable[tuple[bytes, int]] = ()) -> None:
        self._forgotten = 0
        """The highest position of the incarnations whose ids are forgotten."""
        self._incarnations: list[tuple[bytes, int]] = []
        for incarnation, until in incarnations:
            if incarnation:
                self._incarnations.append((incarnation, until))
            else:
                self._forgotten = until

    @property
    def incarnations(self) -> list[tuple[bytes, int]]:
        """The incarnations for a state frame. Those with forgotten ids come first, as one."""
        return (
            [(b"", self._forgotten), *self._incarnations] if self._forgotten else self._incarnations
        )

    @property
    def incarnation(self) -> bytes:
        """The newest incarnation's id; empty before the first."""
        return self._incarnations[-1][0] if self._incarnations else b""

    def named(self, drawn: bytes) -> bytes:
        """Return the id of the incarnation that follows the newest."""
        return _id_of(_rank_of(self.incarnation), drawn)

    def named_after_repair(self, drawn: bytes) -> bytes:
        """Return the id of the incarnation that a repair begins."""
        return _id_of(1 + self._highest, drawn)

    @property
    def _highest(self) -> int:
        return max((_rank_of(incarnation) for incarnation, _ in self._incarnations), default=0)

    def end(self, position: int) -> None:
        """End the running incarnation at a position."""
        if self._incarnations and self._incarnations[-1][1] == OPEN:
            self._incarnations[-1] = (self._incarnations[-1][0], position)

    def begin(self, incarnation: bytes, position: int) -> None:
        """Begin an incarnation at a position, and end the one before it there."""
        if _rank_of(incarnation) > _rank_of(self.incarnation):
            # What lower ranks promised counts no more, and they say nothing about this one.
            self._incarnations, self._forgotten = [], 0
        self.end(position)
        self._incarnations.append((incarnation, OPEN))
        self._forget_oldest()

    def holds(self, incarnation: bytes, position: int) -> bool:
        """Tell whether what an incarnation made durable up to a position is accounted for."""
        if _rank_of(incarnation) < _rank_of(self.incarnation):
            return True
        for known, until in self._incarnations:
            if known == incarnation:
                return position <= until
        # For incarnations whose ids are forgotten, only the position can tell.
        is_ours = _rank_of(incarnation) == _rank_of(self.incarnation)
        return is_ours and 0 < self._forgotten >= position

    def note_lost(self, incarnation: bytes, position: int) -> None:
        """Note that what an incarnation made durable up to a position is lost."""
        others = [item for item in self._incarnations if item[0] != incarnation]
        self._incarnations = [*others[:-1], (incarnation, position), *others[-1:]]
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._incarnations) > KEPT:
            # Forget lost incarnations of higher ranks last: a repair has to take a rank above
            # theirs. Never forget the newest.
            older = range(len(self._incarnations) - 1)
            place = min(older, key=lambda n: _rank_of(self._incarnations[n][0]))
            self._forgotten = max(self._forgotten, self._incarnations.pop(place)[1])


def _id_of(rank: int, drawn: bytes) -> bytes:
    # A peer may name any rank, up to the last that fits.
    return min(rank, _RANK_MAX).to_bytes(_RANK_BYTES, "big") + drawn


def _rank_of(incarnation: bytes) -> int:
    return int.from_bytes(incarnation[:_RANK_BYTES], "big")
