"""The kinds of runs: how each is made, which figures it has, and what those figures must reach.

Rule: whoever adds a kind adds its row here. `full` makes its runs, `summarise` folds its pieces,
and docs/safety.md shows its line, or says that it was not run.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Run(NamedTuple):
    """One command of a full run."""

    module: str
    arguments: str = ""
    """`{jobs}` stands for how many processes, `{at_most_two}` for two where that is most."""

    def filled(self, jobs: int) -> list[str]:
        """The arguments, for so many processes."""
        return self.arguments.format(jobs=jobs, at_most_two=min(jobs, 2)).split()


class Kind(NamedTuple):
    """One kind of runs. Names of figures are those that the pieces have."""

    title: str
    counted: str
    """The figure that says how many. The length counts, if the figure is a list."""
    unit: str
    wrong: tuple[str, ...]
    """Figures that must be 0, or lists that must be empty."""
    again: str
    """The command as a reader types it."""
    named_by: tuple[str, ...] = ()
    """Figures that tell one piece from its like."""
    shown: tuple[str, ...] = ()
    """More figures to keep: numbers, lists of which the length counts, tables that are added up."""
    samples: Mapping[str, str] = {}
    """Lists of times in ms of which percentiles are kept, each with the percentiles' prefix."""
    least: int = 0
    """How many there should be."""
    below: Mapping[str, float] = {}
    """Figures that must stay below a limit."""
    runs: tuple[Run, ...] = ()
    """Of a full run. Seeds have none: they come in turns."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The figures that each piece must have."""
        return (*self.named_by, self.counted, *self.wrong, *self.samples)


KINDS: dict[str, Kind] = {
    "seeds": Kind(
        "Simulated clusters",
        "count",
        "seeds",
        ("violations",),
        "make seeds N=1000",
        ("simulator", "kind"),
        ("simulated_s", "events", "faults", "answers"),
        least=50_000,
    ),
    "calm": Kind(
        "A simulated hour of load without faults",
        "acknowledged",
        "changes",
        ("elections", "fenced", "registrations"),
        "python -m tests.simulation.calm --changes 20",
        shown=("simulated_s", "reads", "records"),
        runs=(Run("tests.simulation.calm", "--changes 20"),),
    ),
    "crash points": Kind(
        "Kills at each change of a controller's real files",
        "points",
        "crash points",
        ("violations",),
        "make crashpoints",
        ("role",),
        ("acknowledged",),
        least=600,
        runs=(
            Run("tests.crashpoints", "--jobs {jobs}"),
            Run("tests.crashpoints.processes", "--points 100"),
        ),
    ),
    "power cuts": Kind(
        "Loss of power under real processes",
        "cuts",
        "power cuts",
        ("violations",),
        "python -m tests.power --cuts 100",
        shown=("acknowledged",),
        runs=(Run("tests.power", "--cuts 100"),),
    ),
    "flips": Kind(
        "Flipped bits in files and frames",
        "flips",
        "flips",
        ("silent",),
        "make flips",
        ("file",),
        ("bytes", "harmed_otherwise", "detected", "harmless"),
        least=1_000_000,
        runs=(Run("tests.flips", "--count 1050000"),),
    ),
    "kills": Kind(
        "Kills of real leaders under load",
        "kills",
        "leaders killed",
        ("missing", "doubled", "misplaced", "unsound", "fenced"),
        "make kills N=500",
        shown=("acknowledged", "tries", "read_back"),
        samples={"samples_ms": "", "paused_ms": "paused ", "second_ms": "second kill "},
        least=500,
        below={"p99_ms": 1000},
        runs=(Run("tests.kills", "--count 520"),),
    ),
    "voter runs": Kind(
        "Real clusters whose voters change under load and kills, 1 to 3 to 5 to 3",
        "runs",
        "runs",
        ("missing", "doubled", "misplaced", "unsound", "fenced"),
        "make voter-runs RUNS=20",
        shown=("changes", "kills_during", "leaders_killed", "acknowledged"),
        samples={"samples_ms": "pause "},
        least=20,
        below={"pause_max_ms": 1000},
        runs=(Run("tests.voter_runs", "--count 20"),),
    ),
    "mutants": Kind(
        "Builds in which one protection is switched off",
        "mutants",
        "mutants killed",
        ("survivors",),
        "make mutants",
        least=20,
        runs=(Run("tests.mutants", "--jobs {at_most_two}"),),
    ),
    "model": Kind(
        "The model of the guard, explored to its end",
        "states",
        "states",
        ("violated", "mutants_not_rejected"),
        "make model",
        ("spec",),
        ("distinct", "depth", "invariants", "mutants_rejected"),
        runs=(Run("tests.model", "--workers {jobs}"),),
    ),
    "replays": Kind(
        "The same seeds on other Pythons and hash seeds",
        "seeds",
        "seeds repeated",
        ("different",),
        "python -m tests.simulation.replays --seeds 20",
        shown=("pythons", "hash_seeds"),
        runs=(Run("tests.simulation.replays", "--seeds 20"),),
    ),
    "coverage": Kind(
        "Pairs of fault and operation that met in the seeds",
        "filled",
        "pairs",
        ("empty",),
        "python -m tests.simulation.coverage FOLDER",
    ),
}
