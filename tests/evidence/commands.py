"""How each kind of evidence is made: the command for a reader, and its pieces for a full run.

Rule: what the page says to type is what the full run types. A module that isn't there is no
reason to stop: the full run says that it was left out, and the page says `not run yet`.
"""

from typing import NamedTuple


class Command(NamedTuple):
    """One kind of evidence."""

    again: str
    """As a reader types it."""
    note: str
    module: str
    arguments: tuple[str, ...]
    """Of a full run; `{jobs}` stands for how many processes, `{at_most_two}` where two are most."""

    def filled(self, jobs: int) -> list[str]:
        """The arguments, for so many processes."""
        return [part.format(jobs=jobs, at_most_two=min(jobs, 2)) for part in self.arguments]


COMMANDS: dict[str, Command] = {
    "seeds": Command(
        "make seeds N=1000",
        "one again: `make seed SEED=17`; many at once: `python -m tests.simulation.many`",
        "tests.simulation.many",
        ("--jobs", "{jobs}"),
    ),
    "crash points": Command("make crashpoints", "", "tests.crashpoints", ("--jobs", "{jobs}")),
    "power cuts": Command(
        "python -m tests.powercuts", "needs FUSE", "tests.powercuts", ("--jobs", "{jobs}")
    ),
    "flips": Command(
        "python -m tests.flips --count 1000000", "", "tests.flips", ("--count", "1050000")
    ),
    "kills": Command(
        "python -m tests.kills --count 500",
        "ten minutes and more, on a machine with nothing else to do",
        "tests.kills",
        ("--count", "520"),
    ),
    "mutants": Command("make mutants", "", "tests.mutants", ("--jobs", "{at_most_two}")),
    "model": Command("python -m tests.model", "", "tests.model", ()),
    "replays": Command(
        "python -m tests.simulation.replays --seeds 20",
        "`--python` names another one that has Quorate installed",
        "tests.simulation.replays",
        ("--seeds", "20"),
    ),
}
