"""Mutants of large operations: requests and events that are written in rounds (ADR 0036)."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited

MOVES = searched_in("cluster", "moves")
_SWEEP = "controller.managers.sweep.Sweep."
_ISRS = "controller.managers.isr_changes."


def _edit(target: str, *changes: tuple[str, str]) -> tuple[Patch, ...]:
    return (Patch(target, edited(*changes)),)


DIVIDING = (
    Mutant(
        "a replica comes back while its directory is left",
        "17, I17",
        "Between two rounds, a leader may bring a replica back whose directory has failed.",
        _edit(
            _SWEEP + "takes_out",
            (" and (directories is None or directory in directories)", " and directories is None"),
        ),
    ),
    Mutant(
        "a broker leaves with all its replicas when a directory is left",
        "17, I17",
        "Between two rounds, its replicas in other directories are refused too.",
        _edit(
            _SWEEP + "takes_out",
            (" and (directories is None or directory in directories)", ""),
        ),
    ),
    Mutant(
        "a replica comes back to a failed directory",
        "17, I17",
        "A leader may bring a replica into the ISR that lies on a directory which has failed.",
        _edit(
            _ISRS + "_check_members",
            ("elif broker is not None and not is_online(broker, directory):", "elif False:"),
        ),
        MOVES,
    ),
)
