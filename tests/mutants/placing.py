"""Mutants of placement: which brokers get new replicas, and in which order."""

from tests.mutants.mutant import Mutant
from tests.mutants.patches import Patch, edited, gives

_MANAGERS = "controller.managers."
_PLACEMENT = _MANAGERS + "placement."


def _place(*changes: tuple[str, str]) -> tuple[Patch, ...]:
    """Topics and added partitions have imported the function by its name."""
    places = (_PLACEMENT + "place", _MANAGERS + "assignments.place")
    return tuple(Patch(place, edited(*changes)) for place in places)


PLACING = (
    Mutant(
        "a stopping broker gets replicas",
        "17, I17",
        "A broker in controlled shutdown counts as one that stays.",
        (
            Patch(
                "metadata.image.derived_brokers.takes_replicas",
                edited(("not broker.in_controlled_shutdown and ", "")),
            ),
        ),
    ),
    Mutant(
        "a reassignment to a cordoned broker",
        "17, I17",
        "Replicas that are moved are not asked about cordons (KIP-1066).",
        (Patch(_MANAGERS + "reassignments.why_no_new_replica", gives("")),),
    ),
    Mutant(
        "a fenced broker is placed like a live one",
        "17, I17",
        "Whether a broker is fenced does not matter.",
        _place(
            (
                "check_placement(racks, replication_factor)",
                "racks = [Rack(r.name, [*r.live, *r.fenced], []) for r in racks]",
            )
        ),
    ),
    Mutant(
        "racks are not looked at",
        "17, I17",
        "All brokers are placed as if they were in one rack.",
        _place(
            (
                "check_placement(racks, replication_factor)",
                "racks = [Rack('', sum(map(list, (r.live for r in racks)), []), [])]",
            )
        ),
    ),
    Mutant(
        "every partition begins in the same rack",
        "17, I17",
        "The start does not move from rack to rack.",
        _place(("(start + placed) % len(racks)", "start")),
    ),
    Mutant(
        "one broker of a rack leads all its partitions",
        "17, I17",
        "The start does not move within a rack.",
        (
            Patch(
                _PLACEMENT + "_Ring.take",
                edited(("self._start + partition + again", "self._start")),
            ),
        ),
    ),
)
