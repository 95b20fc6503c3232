"""Ways to harm a folder: what a disk, a cable or a copy does to files that were right.

Rule: one harm at a time, in one file. What can be listed is: each bit of each byte, each length,
each file gone or in the place of another. The rest is drawn from a seed: several bits, zeros,
sectors lost or swapped, bytes of another file.
"""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.flips.memory import Files

SECTOR = 512

ONE_BIT = "one bit"
SOME_BITS = "several bits"
CUT = "cut"
GONE = "gone"
IN_PLACE = "another's content"
ZEROS = "zeros"
SECTOR_ZEROED = "a sector zeroed"
SECTOR_SWAPPED = "two sectors swapped"
SECTOR_OF_ANOTHER = "a sector of another file"


class Harm(NamedTuple):
    """One harm."""

    way: str
    where: str
    files: dict[str, bytes]
    """The whole folder, as it is then."""


def every_bit(files: Files, targets: Sequence[str], *, thinned: bool = False) -> Iterator[Harm]:
    """Flip each bit of each byte; `thinned`: one bit of each byte, not always the same."""
    for name in targets:
        data = bytearray(files[name])
        for place in range(len(data)):
            for bit in (place * 5 % 8,) if thinned else range(8):
                data[place] ^= 1 << bit
                yield Harm(ONE_BIT, f"{name}, byte {place}", {**files, name: bytes(data)})
                data[place] ^= 1 << bit


def every_length(files: Files, targets: Sequence[str], *, thinned: bool = False) -> Iterator[Harm]:
    """Cut each file to each length; `thinned`: to a few."""
    for name in targets:
        for length in range(0, len(files[name]), 31 if thinned else 1):
            yield Harm(CUT, f"{name}, {length} bytes", {**files, name: files[name][:length]})


def every_file(files: Files, targets: Sequence[str], others: Files) -> Iterator[Harm]:
    """Take each file away, and put each other file of its kind in its place.

    `others`: files that lie elsewhere: another node's, another cluster's.
    """
    for name in targets:
        yield Harm(GONE, name, {other: data for other, data in files.items() if other != name})
        for source, data in [*((f, files[f]) for f in targets), *others.items()]:
            if data != files[name]:
                yield Harm(IN_PLACE, f"{name}, of {source}", {**files, name: data})


class Drawing:
    """Harms from a seed, without end."""

    def __init__(self, files: Files, targets: Sequence[str], others: Files, seed: int) -> None:
        self._files = files
        self._targets = [name for name in targets if files[name]]
        self._weights = [len(files[name]) for name in self._targets]
        self._donors = [data for data in [*map(files.get, targets), *others.values()] if data]
        self._dice = random.Random(seed)
        self._ways = (
            [(ONE_BIT, self._one_bit)] * 10
            + [(SOME_BITS, self._some_bits)] * 6
            + [(ZEROS, self._zeros), (CUT, self._cut)]
            + [(SECTOR_ZEROED, self._sector_zeroed), (SECTOR_SWAPPED, self._sectors_swapped)]
            + [(SECTOR_OF_ANOTHER, self._sector_of_another)]
        )

    def __iter__(self) -> Iterator[Harm]:
        dice = self._dice
        while True:
            (name,) = dice.choices(self._targets, self._weights)
            way, harm = dice.choice(self._ways)
            data = bytearray(self._files[name])
            place = harm(data)
            if data != self._files[name]:
                yield Harm(way, f"{name}, {place}", {**self._files, name: bytes(data)})

    def _one_bit(self, data: bytearray) -> str:
        place = self._dice.randrange(len(data) * 8)
        data[place >> 3] ^= 1 << (place & 7)
        return f"bit {place}"

    def _some_bits(self, data: bytearray) -> str:
        """Two to twelve, near one another or anywhere."""
        dice, places = self._dice, set[int]()
        reach = dice.choice((64, 512, len(data) * 8))
        start = dice.randrange(max(1, len(data) * 8 - reach + 1))
        for _ in range(dice.randint(2, 12)):
            places.add(min(start + dice.randrange(reach), len(data) * 8 - 1))
        for place in places:
            data[place >> 3] ^= 1 << (place & 7)
        return f"bits {sorted(places)}"

    def _zeros(self, data: bytearray) -> str:
        start = self._dice.randrange(len(data))
        end = min(len(data), start + self._dice.choice((1, 4, 16, 64, 256)))
        data[start:end] = bytes(end - start)
        return f"bytes {start} to {end}"

    def _cut(self, data: bytearray) -> str:
        length = self._dice.randrange(len(data))
        del data[length:]
        return f"{length} bytes"

    def _sector_zeroed(self, data: bytearray) -> str:
        start = self._sector(data)
        end = min(len(data), start + SECTOR)
        data[start:end] = bytes(end - start)
        return f"sector at {start}"

    def _sectors_swapped(self, data: bytearray) -> str:
        one, other = sorted((self._sector(data), self._sector(data)))
        size = min(SECTOR, len(data) - other)
        first, second = data[one : one + size], data[other : other + size]
        data[one : one + size], data[other : other + size] = second, first
        return f"sectors at {one} and {other}"

    def _sector_of_another(self, data: bytearray) -> str:
        """A write that went astray: the right place in the wrong file."""
        donor = self._dice.choice(self._donors)
        start = self._sector(data)
        piece = donor[start : start + SECTOR][: len(data) - start]
        data[start : start + len(piece)] = piece
        return f"sector at {start} of a file of {len(donor)} bytes"

    def _sector(self, data: bytearray) -> int:
        return self._dice.randrange(0, len(data), SECTOR)
