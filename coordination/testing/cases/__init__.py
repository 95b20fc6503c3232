"""The cases, by theme.

Importing this package registers all of them in `coordination.testing.case.CASES`.

Each case is a function whose name begins with the case's name. Its docstring says what it shows.
The order of the imports doesn't matter: `all_cases` sorts as the list of KIP-30's cases does.
"""

import re

from coordination.testing.case import CASES, Case
from coordination.testing.cases import (
    claims,
    clocks,
    election_faults,
    elections,
    fencing,
    group_crowds,
    groups,
    hygiene,
    listeners,
    locks,
    partitions,
    session_loss,
    sessions,
    storage,
    storage_limits,
    watch_gaps,
    watches,
)

FAMILIES = {"S": 14, "G": 14, "E": 18, "F": 7, "K": 19, "W": 19, "L": 10, "P": 9, "C": 5, "A": 8}
"""How many cases each family has. M1 to M10 are about imports; the importer's own tests have
them."""

_THEMES = (
    claims,
    clocks,
    election_faults,
    elections,
    fencing,
    group_crowds,
    groups,
    hygiene,
    listeners,
    locks,
    partitions,
    session_loss,
    sessions,
    storage,
    storage_limits,
    watch_gaps,
    watches,
)


def all_cases() -> list[Case]:
    """Return every case in the order of the list: S1 to A8."""
    families = list(FAMILIES)

    def place(case: Case) -> tuple[int, int]:
        family, number = re.fullmatch(r"([A-Z])(\d+)", case.name).groups()  # type: ignore[union-attr]
        return families.index(family), int(number)

    return sorted(CASES.values(), key=place)
