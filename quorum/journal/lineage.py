"""The lives of one folder: what tells a folder that was put back from one that only slept.

Rule: every life (one process, from its start, or from a repair, on) draws an id and writes it down
before its voice counts. The *lineage* says of each life up to which position the journal holds what
that life made durable. Who was told by a life Y that it is durable up to P asks a later life: does
your lineage hold Y up to P? A restored folder can't: either Y began after the copy was made, and is
unknown to it, or Y was cut off where the copy was made, and the next life begins below P.

Ids are drawn, so a folder that was put back and then written to for long is told from the one that
it was: positions meet again, lives don't.

What was found to be lost is written into the lineage too, so it is found once. And a life's id
begins with its *generation*. A repair makes good everything that was promised before it, in lives
whose names nobody recalls any more, too. So it begins a life of the generation above all that were
heard of, and what was said in an earlier one is held against nobody, not even by a peer whose own
damage left it with a memory of long ago. An accepted loss does the same, above every repair that
another copy of the folder may have seen.
"""

from collections.abc import Iterable

DRAWN_BYTES = 8
_GENERATION_BYTES = 4
_GENERATION_MAX = (1 << 8 * _GENERATION_BYTES) - 1
_REPAIRS = 0xFFFF
"""The part of a generation that counts repairs; the part above it counts accepted losses."""
LIFE_BYTES = _GENERATION_BYTES + DRAWN_BYTES
KEPT = 64
"""Lives that are remembered by name."""
OPEN = 2**62
"""The end of the life that runs."""


class Lineage:
    """Lives in their order, each with the position up to which it is held here."""

    def __init__(self, lives: Iterable[tuple[bytes, int]] = ()) -> None:
        self._forgotten = 0
        """The highest position up to which a life was held that isn't known by name any more."""
        self._lives: list[tuple[bytes, int]] = []
        for life, until in lives:
            if life:
                self._lives.append((life, until))
            else:
                self._forgotten = until

    @property
    def lives(self) -> list[tuple[bytes, int]]:
        """For a state frame; those forgotten by name stand first, under no name."""
        return [(b"", self._forgotten), *self._lives] if self._forgotten else self._lives

    @property
    def life(self) -> bytes:
        """The newest life's id; empty before the first."""
        return self._lives[-1][0] if self._lives else b""

    def named(self, drawn: bytes) -> bytes:
        """Return the id of the life that follows the newest."""
        return _id_of(_generation_of(self.life), drawn)

    def named_after_repair(self, drawn: bytes) -> bytes:
        """Return the id of the life that a repair begins."""
        return _id_of(1 + self._highest, drawn)

    def named_after_loss(self, drawn: bytes) -> bytes:
        """Return the id of the life that an accepted loss begins."""
        return _id_of(1 + (self._highest | _REPAIRS), drawn)

    @property
    def _highest(self) -> int:
        return max((_generation_of(life) for life, _ in self._lives), default=0)

    def end(self, position: int) -> None:
        """The life that ran came so far, and no further."""
        if self._lives and self._lives[-1][1] == OPEN:
            self._lives[-1] = (self._lives[-1][0], position)

    def begin(self, life: bytes, position: int) -> None:
        """A life begins at a position, where the one before it ended."""
        if _generation_of(life) > _generation_of(self.life):
            # What was said in earlier ones counts no more; nor may it speak for what comes.
            self._lives, self._forgotten = [], 0
        self.end(position)
        self._lives.append((life, OPEN))
        self._forget_oldest()

    def holds(self, life: bytes, position: int) -> bool:
        """Tell whether what a life made durable up to a position is here, or accounted for."""
        if _generation_of(life) < _generation_of(self.life):
            return True
        for known, until in self._lives:
            if known == life:
                return position <= until
        # Of lives that are forgotten by name, only the position can tell.
        is_ours = _generation_of(life) == _generation_of(self.life)
        return is_ours and 0 < self._forgotten >= position

    def note_lost(self, life: bytes, position: int) -> None:
        """What a life made durable up to a position is not here, and that is known now."""
        others = [item for item in self._lives if item[0] != life]
        self._lives = [*others[:-1], (life, position), *others[-1:]]
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._lives) > KEPT:
            # Those of later generations, which were heard of and are lost, go last: a repair has
            # to be above them. The newest stays.
            older = range(len(self._lives) - 1)
            place = min(older, key=lambda n: _generation_of(self._lives[n][0]))
            self._forgotten = max(self._forgotten, self._lives.pop(place)[1])


def _id_of(generation: int, drawn: bytes) -> bytes:
    # A peer may name any generation; behind the last one there is none.
    return min(generation, _GENERATION_MAX).to_bytes(_GENERATION_BYTES, "big") + drawn


def _generation_of(life: bytes) -> int:
    return int.from_bytes(life[:_GENERATION_BYTES], "big")
