"""The types of a mutant and its killers.

Rule: a kill is a seed or a test that fails with the recorded message. A mutant that merely crashes
in its own patch is badly made, and not killed.
"""

from typing import NamedTuple

from tests.mutants.patches import Patch


class SeedSearch(NamedTuple):
    """Where a mutant is looked for: a simulator and a kind of its seeds."""

    simulator: str
    """quorum · cluster · answers (a cluster of which only the judges are heard) · reference ·
    case (of coordination's suite)."""
    kind: str = ""
    """Of its seeds; of `case`: which one."""
    nodes: int | None = None
    """Of the quorum; None: as the seed draws."""


class Seed(NamedTuple):
    """A seed that kills."""

    search: SeedSearch
    number: int
    says: str
    """A part of what is said."""
    faults_s: float | None = None
    """Shorter than usual, where that is enough."""

    def __str__(self) -> str:
        search = self.search
        nodes = f" of {search.nodes} nodes" if search.nodes else ""
        return (
            f"seed {self.number} ({search.simulator}{f' {search.kind}' * bool(search.kind)}{nodes})"
        )


class DirectedTest(NamedTuple):
    """A test that kills."""

    node: str
    """As pytest names it."""
    says: str = ""

    def __str__(self) -> str:
        return f"test {self.node}"


class Mutant(NamedTuple):
    """One protection switched off."""

    name: str
    promise: str
    """What it breaks, by number: promises of docs/safety.md, invariants of docs/simulation.md."""
    without: str
    """What is missing in this build, in a sentence."""
    patches: tuple[Patch, ...]
    searches: tuple[SeedSearch, ...] = ()
    """Where a search looks; nowhere: only a directed test sees it."""


def searched_in(simulator: str, *kinds: str, nodes: int | None = None) -> tuple[SeedSearch, ...]:
    """Hunts in several kinds of one simulator; none said: in the kind that a number has."""
    return tuple(SeedSearch(simulator, kind, nodes) for kind in kinds or ("",))
