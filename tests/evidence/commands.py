"""How each kind of evidence is made: the command for a reader, and the runs of a full one.

Rule: a full run takes a module's pieces for its work: what has left one is not run again. A module
that isn't there is no reason to stop: the full run says that it was left out, and the page says
`not run yet`.
"""

from typing import NamedTuple


class Run(NamedTuple):
    """One command of a full run."""

    module: str
    arguments: tuple[str, ...] = ()
    """`{jobs}` stands for how many processes, `{at_most_two}` where two are most."""

    def filled(self, jobs: int) -> list[str]:
        """The arguments, for so many processes."""
        return [part.format(jobs=jobs, at_most_two=min(jobs, 2)) for part in self.arguments]


class Command(NamedTuple):
    """One kind of evidence."""

    again: str
    """As a reader types it."""
    note: str
    runs: tuple[Run, ...]


COMMANDS: dict[str, Command] = {
    "seeds": Command(
        "make seeds N=1000",
        "one again: `make seed SEED=17`; many at once: `python -m tests.simulation.many`",
        (Run("tests.simulation.many", ("--jobs", "{jobs}")),),
    ),
    "crash points": Command(
        "make crashpoints",
        "on real processes: `python -m tests.crashpoints.processes`",
        (
            Run("tests.crashpoints", ("--jobs", "{jobs}")),
            Run("tests.crashpoints.processes", ("--points", "100")),
        ),
    ),
    "power cuts": Command(
        "python -m tests.power", "needs FUSE", (Run("tests.power", ("--cuts", "100")),)
    ),
    "flips": Command(
        "make flips",
        "",
        (Run("tests.flips", ("--count", "1050000")),),
    ),
    "kills": Command(
        "make kills N=500",
        "twenty minutes, on a machine with nothing else to do",
        (Run("tests.kills", ("--count", "520")),),
    ),
    "mutants": Command("make mutants", "", (Run("tests.mutants", ("--jobs", "{at_most_two}")),)),
    "model": Command(
        "make model",
        "needs Java; once, the network",
        (Run("tests.model", ("--workers", "{jobs}")),),
    ),
    "replays": Command(
        "python -m tests.simulation.replays --seeds 20",
        "`--python` names another one that has Logberg installed",
        (Run("tests.simulation.replays", ("--seeds", "20")),),
    ),
}
