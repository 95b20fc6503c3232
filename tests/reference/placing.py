"""Where the controller may put the replicas of new partitions (section 3, rules 1 to 5).

The rules leave the start to chance, so this module places nothing. It looks at a list of replicas
and says which rule the list breaks: some start must explain it.

Rule: this module knows nothing of the product.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

Ids = tuple[int, ...]


class Place(NamedTuple):
    """A broker that may get replicas."""

    rack: str | None
    fenced: bool


def breaks(usable: Mapping[int, Place], factor: int, lists: list[Ids]) -> str:
    """Return which rule is broken by the replicas of partitions, in their order; empty: none."""
    for replicas in lists:
        if len(replicas) != factor or len(set(replicas)) < factor:
            return f"{replicas} are not {factor} brokers"
        if not set(replicas) <= set(usable):
            return f"{replicas} are not all brokers that may get replicas"
    names = sorted({place.rack for place in usable.values()}, key=lambda rack: rack or "")
    live = Counter(place.rack for place in usable.values() if not place.fenced)
    fenced = Counter(place.rack for place in usable.values() if place.fenced)
    first = min(factor, live.total())
    starts = range(len(names))
    possible = set(starts)
    for number, replicas in enumerate(lists):
        if [usable[broker].fenced for broker in replicas] != [n >= first for n in range(factor)]:
            return f"{replicas}: a fenced broker stands before a live one, or in its place"
        racks = [usable[broker].rack for broker in replicas]
        # The walk begins one rack further for each partition.
        possible &= {
            start
            for start in starts
            if racks[:first] == list(_walk(names, live, (start + number) % len(names), first))
        }
        if not possible:
            return f"partition {number}: {replicas} are in racks {racks}, not round robin"
        rest = factor - first
        if all(racks[first:] != list(_walk(names, fenced, start, rest)) for start in starts):
            return f"partition {number}: fenced {replicas[first:]} are not round robin"
    if len({live[name] for name in names}) == 1 and len(lists) % live.total() == 0:
        leads = Counter({broker: 0 for broker, place in usable.items() if not place.fenced})
        leads.update(replicas[0] for replicas in lists)
        if max(leads.values()) - min(leads.values()) > 1:
            return f"leaders are uneven: {dict(leads)}"
    return ""


def _walk(
    names: list[str | None], members: Counter[str | None], start: int, count: int
) -> Iterator[str | None]:
    """Yield the racks of so many brokers, round robin; a rack that is used up is passed over."""
    left = Counter(members)
    at = start
    while count:
        name = names[at % len(names)]
        if left[name]:
            left[name] -= 1
            count -= 1
            yield name
        at += 1
