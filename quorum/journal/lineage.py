"""The lives of one folder: what tells a folder that was put back from one that only slept.

Rule: every incarnation (one process, from its start, or from a repair, on) draws an id and writes
it down before its voice counts. The *lineage* says of each incarnation up to which position the
journal holds what that incarnation made durable. Who was told by an incarnation Y that it is
durable up to P asks a later incarnation: does your lineage hold Y up to P? A restored folder can't:
either Y began after the copy was made, and is unknown to it, or Y was cut off where the copy was
made, and the next incarnation begins below P.

Ids are drawn, so a folder that was put back and then written to for long is told from the one that
it was: positions meet again, incarnations don't.

What was found to be lost is written into the lineage too, so it is found once. And an incarnation's
id begins with its *generation*. A repair makes good everything that was promised before it, in
incarnations whose names nobody recalls any more, too. So it begins an incarnation of the generation
above all that were heard of, and what was said in an earlier one is held against nobody, not even
by a peer whose own damage left it with a memory of long ago. An accepted loss does the same, above
every repair that another copy of the folder may have seen.
"""

from collections.abc import Iterable

DRAWN_BYTES = 8
_GENERATION_BYTES = 4
_GENERATION_MAX = (1 << 8 * _GENERATION_BYTES) - 1
_REPAIRS = 0xFFFF
"""The part of a generation that counts repairs; the part above it counts accepted losses."""
INCARNATION_BYTES = _GENERATION_BYTES + DRAWN_BYTES
KEPT = 64
"""Incarnations that are remembered by name."""
OPEN = 2**62
"""The end of the incarnation that runs."""


class Lineage:
    """Lives in their order, each with the position up to which it is held here."""

    def __init__(self, incarnations: Iterable[tuple[bytes, int]] = ()) -> None:
        self._forgotten = 0
        """The highest position up to which an incarnation was held that isn't known by name any
        more.
        """
        self._incarnations: list[tuple[bytes, int]] = []
        for incarnation, until in incarnations:
            if incarnation:
                self._incarnations.append((incarnation, until))
            else:
                self._forgotten = until

    @property
    def incarnations(self) -> list[tuple[bytes, int]]:
        """For a state frame; those forgotten by name stand first, under no name."""
        return (
            [(b"", self._forgotten), *self._incarnations] if self._forgotten else self._incarnations
        )

    @property
    def incarnation(self) -> bytes:
        """The newest incarnation's id; empty before the first."""
        return self._incarnations[-1][0] if self._incarnations else b""

    def named(self, drawn: bytes) -> bytes:
        """Return the id of the incarnation that follows the newest."""
        return _id_of(_generation_of(self.incarnation), drawn)

    def named_after_repair(self, drawn: bytes) -> bytes:
        """Return the id of the incarnation that a repair begins."""
        return _id_of(1 + self._highest, drawn)

    def named_after_loss(self, drawn: bytes) -> bytes:
        """Return the id of the incarnation that an accepted loss begins."""
        return _id_of(1 + (self._highest | _REPAIRS), drawn)

    @property
    def _highest(self) -> int:
        return max(
            (_generation_of(incarnation) for incarnation, _ in self._incarnations), default=0
        )

    def end(self, position: int) -> None:
        """The life that ran came so far, and no further."""
        if self._incarnations and self._incarnations[-1][1] == OPEN:
            self._incarnations[-1] = (self._incarnations[-1][0], position)

    def begin(self, incarnation: bytes, position: int) -> None:
        """An incarnation begins at a position, where the one before it ended."""
        if _generation_of(incarnation) > _generation_of(self.incarnation):
            # What was said in earlier ones counts no more; nor may it speak for what comes.
            self._incarnations, self._forgotten = [], 0
        self.end(position)
        self._incarnations.append((incarnation, OPEN))
        self._forget_oldest()

    def holds(self, incarnation: bytes, position: int) -> bool:
        """Tell whether what an incarnation made durable up to a position is accounted for."""
        if _generation_of(incarnation) < _generation_of(self.incarnation):
            return True
        for known, until in self._incarnations:
            if known == incarnation:
                return position <= until
        # Of incarnations that are forgotten by name, only the position can tell.
        is_ours = _generation_of(incarnation) == _generation_of(self.incarnation)
        return is_ours and 0 < self._forgotten >= position

    def note_lost(self, incarnation: bytes, position: int) -> None:
        """What an incarnation made durable up to a position is not here, and that is known now."""
        others = [item for item in self._incarnations if item[0] != incarnation]
        self._incarnations = [*others[:-1], (incarnation, position), *others[-1:]]
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._incarnations) > KEPT:
            # Those of later generations, which were heard of and are lost, go last: a repair has
            # to be above them. The newest stays.
            older = range(len(self._incarnations) - 1)
            place = min(older, key=lambda n: _generation_of(self._incarnations[n][0]))
            self._forgotten = max(self._forgotten, self._incarnations.pop(place)[1])


def _id_of(generation: int, drawn: bytes) -> bytes:
    # A peer may name any generation; behind the last one there is none.
    return min(generation, _GENERATION_MAX).to_bytes(_GENERATION_BYTES, "big") + drawn


def _generation_of(incarnation: bytes) -> int:
    return int.from_bytes(incarnation[:_GENERATION_BYTES], "big")
