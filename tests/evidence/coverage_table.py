"""The table of fault by operation: how often each fault struck while each operation was under way.

Rule: rows are all faults that there are, columns all operations that there are, whether they met or
not; so what was never drawn is a row of holes, not a row that is missing. A cell that is empty
although it could be filled is loud; one that can't be filled has its reason below the table.
"""

from collections.abc import Sequence

from runtime.simulated import torments
from tests.evidence.markdown import NOT_RUN, short, table
from tests.evidence.pieces import Piece, summed
from tests.simulation.coverage import CLUSTER_OPERATIONS, IMPOSSIBLE

EMPTY = "**empty !**"
BY_NATURE = "·"
_ABOUT = """\
How often a fault struck while an operation was under way on whom it struck, in both simulators.
"""
_FAULTS = (
    *(torments.CRASHES, torments.PAUSES, torments.CUTS, torments.DISKS, torments.CLOCKS),
    *(torments.NOISE, torments.ROOM, torments.LATE, torments.STARTS, torments.DAMAGE),
)


def faults(coverage: dict[str, dict[str, int]]) -> list[str]:
    """All faults that there are, and those that pieces tell of."""
    known = [fault for table_ in _FAULTS for fault in table_]
    return list(dict.fromkeys([*known, *sorted(coverage)]))


def cells(pieces: Sequence[Piece]) -> dict[tuple[str, str], int]:
    """How often each fault met each operation."""
    coverage = summed(pieces, "seeds").get("coverage", {})
    met = {o for found in coverage.values() for o in found}
    operations = [*CLUSTER_OPERATIONS, *sorted(met - set(CLUSTER_OPERATIONS))]
    return {
        (fault, operation): coverage.get(fault, {}).get(operation, 0)
        for fault in faults(coverage)
        for operation in operations
    }


def holes(found: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    """Cells that are empty and could be filled."""
    return [cell for cell, count in found.items() if not count and cell not in IMPOSSIBLE]


def coverage_section(pieces: Sequence[Piece]) -> str:
    """The section of the page."""
    parts = ["## Coverage: fault by operation\n", _ABOUT]
    if not summed(pieces, "seeds").get("coverage"):
        return "\n".join([*parts, f"**{NOT_RUN}.**\n"])
    found = cells(pieces)
    rows = list(dict.fromkeys(fault for fault, _ in found))
    columns = list(dict.fromkeys(operation for _, operation in found))
    empty = holes(found)
    said = (
        f"**{len(empty)} cells are empty.**" if empty else "No cell is empty that could be filled."
    )
    impossible = [cell for cell, count in found.items() if not count and cell in IMPOSSIBLE]
    shown = [
        (fault.replace("_", " "), *(_cell(found[fault, o], (fault, o)) for o in columns))
        for fault in rows
    ]
    head = ("fault", *columns)
    parts += [
        f"{len(rows)} faults, {len(columns)} operations. {said}\n",
        table(head, shown, right=range(1, len(head))),
    ]
    if impossible:
        parts.append(f"`{BY_NATURE}` can't meet:\n")
        parts += [
            f"- {fault.replace('_', ' ')}, {o}: {IMPOSSIBLE[fault, o]}" for fault, o in impossible
        ]
        parts.append("")
    return "\n".join(parts)


def _cell(count: int, cell: tuple[str, str]) -> str:
    if count:
        return short(count)
    return BY_NATURE if cell in IMPOSSIBLE else EMPTY
