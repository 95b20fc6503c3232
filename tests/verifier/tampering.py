"""What tampering with a ledger is: what must be known to find it, and where it is found.

Rule: no way is found "somewhere". Its place is the frame that was tampered with, or the frame
behind it where only the chain can tell, or the stretch between two heads that are known. What the
folder alone can't show says so in `needs`, and must not be found without: else this would prove
less than it says. The ways themselves are in `tampering_bytes`, `_batches`, `_ends` and
`_checkpoints`.
"""

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.verifier.small_world import Files, Small

NOTHING: Final = "nothing"
HEAD: Final = "a head"
REPLICAS: Final = "two other replicas"
DIGEST: Final = "a digest"
WHOLE: Final = "that history is whole"
CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"


class Tampered(NamedTuple):
    """What became of a folder."""

    files: Files
    file: str = ""
    """Where it is found: in this file, in frame `index` (behind the last: where the file ends)."""
    index: int = 0
    heads: tuple[int, ...] = ()
    """Offsets of heads that are known, if that is needed: all are right but the last."""
    also: tuple[str, int] | None = None
    """Another place where it may be found, if what was changed is still well formed."""

    def spans(self) -> list[tuple[str, int, int]]:
        """The places: a file, the first byte, and the one behind it."""
        return [self._span(*place) for place in ((self.file, self.index), self.also) if place]

    def _span(self, file: str, index: int) -> tuple[str, int, int]:
        frames = self.files[file]
        start = sum(map(len, frames[:index]))
        return file, start, start + len(frames[index] if index < len(frames) else b"\0")


Way = Callable[[Small, random.Random], Tampered]


class Kind(NamedTuple):
    """A way to tamper."""

    needs: str
    way: Way
    product: bool
    """Whether the product's verification is asked, too."""

    @property
    def name(self) -> str:
        return self.way.__name__.replace("_", " ")


class Kinds(list[Kind]):
    """The ways of one sort; used as a decorator, it takes one up."""

    def __call__(self, needs: str, *, product: bool = True) -> Callable[[Way], Way]:
        def add(way: Way) -> Way:
            self.append(Kind(needs, way, product))
            return way

        return add


def some_number(world: Small, dice: random.Random) -> int:
    """The number of a batch, but not of the last."""
    return dice.randrange(len(world.batches) - 1)


def behind(world: Small, files: Files, number: int) -> Tampered:
    """What is said of batch `number` is wrong: the frame behind it says so, perhaps a header."""
    one, behind = world.batches[number], world.batches[number + 1]
    return Tampered(files, behind.file, behind.index if one.file == behind.file else 0)


def heads_around(world: Small, dice: random.Random, number: int) -> tuple[int, ...]:
    """A head before batch `number`, and one behind it."""
    before = dice.choice([0, *(one.end for one in world.batches[:number])])
    return before, dice.choice([one.end for one in world.batches[number:]])
