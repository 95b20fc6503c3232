"""The placement of replicas once more, in the plainest way: it goes over all brokers each time.

`controller.managers.placement` must give the same answers with the same dice, because a recorded
seed stands for the placements that it gave.
"""

from collections.abc import Iterator, Sequence
from math import gcd
from random import Random
from typing import NamedTuple

from metadata.image.brokers import Rack, RackName
from metadata.image.sorted_keys import SortedKeys


class Candidate(NamedTuple):
    """A broker that may get replicas."""

    broker_id: int
    rack: str | None
    fenced: bool


def racks_of(candidates: Sequence[Candidate]) -> list[Rack]:
    """Return the racks of these brokers, as an image holds them."""
    return [
        Rack(
            name, _brokers(candidates, name, fenced=False), _brokers(candidates, name, fenced=True)
        )
        for name in sorted({_name(candidate) for candidate in candidates})
    ]


def _name(candidate: Candidate) -> RackName:
    return candidate.rack is not None, candidate.rack or ""


def _brokers(candidates: Sequence[Candidate], name: RackName, *, fenced: bool) -> SortedKeys[int]:
    ids = sorted(c.broker_id for c in candidates if _name(c) == name and c.fenced == fenced)
    # Chunks of a few, so that small cases cross the borders of chunks too.
    return SortedKeys([tuple(ids[start : start + 3]) for start in range(0, len(ids), 3)])


class _Ring:
    def __init__(self, brokers: list[int], random: Random) -> None:
        self.brokers = brokers
        self.start = random.randrange(len(brokers)) if brokers else 0
        self.taken = 0
        self.placements = 0

    def next_partition(self, racks: int) -> None:
        self.taken = 0
        if not self.brokers:
            return
        self.placements += 1
        size = len(self.brokers)
        met_again = self.placements % (racks * size // gcd(racks, size)) == 0
        self.start = (self.start + (2 if met_again else 1)) % size


def placed_plainly(
    candidates: Sequence[Candidate], factor: int, random: Random
) -> Iterator[tuple[int, ...]]:
    """Yield the replicas of one partition after another, without end."""
    racks = racks_of(candidates)
    live = [_Ring(list(rack.live), random) for rack in racks]
    fenced = [_Ring(list(rack.fenced), random) for rack in racks]
    live_brokers = sum(len(ring.brokers) for ring in live)
    start = random.randrange(len(racks))
    placed = 0
    while True:
        replicas = _taken(live, start, factor)
        yield (*replicas, *_taken(fenced, start, factor - len(replicas)))
        placed += 1
        start = (start + 1) % len(racks)
        for ring in (*live, *fenced):
            ring.next_partition(len(racks))
        if placed % live_brokers == 0:
            for ring in (*live, *fenced):
                random.shuffle(ring.brokers)


def _taken(rings: Sequence[_Ring], start: int, count: int) -> tuple[int, ...]:
    """Take up to so many brokers, round robin over the rings, from a ring on."""
    taken: list[int] = []
    at, empty = start, 0
    while len(taken) < count and empty < len(rings):
        ring = rings[at % len(rings)]
        at += 1
        if ring.taken == len(ring.brokers):
            empty += 1
            continue
        empty = 0
        taken.append(ring.brokers[(ring.start + ring.taken) % len(ring.brokers)])
        ring.taken += 1
    return tuple(taken)
