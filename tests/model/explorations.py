"""The configurations that TLC explores, and the mutants that it must refuse.

Rule: a configuration is a file in model/, which anybody can run by hand. A mutant is a
configuration with one rule named in `Drop`. It names the invariant that then breaks.
"""

import re
from pathlib import Path
from typing import NamedTuple

from tests.model.checker import MODEL


class Mutant(NamedTuple):
    """The protocol without a rule."""

    rule: str
    """As the specification names it in `Keeps`."""
    configuration: str
    breaks: str
    """The invariant that TLC must find violated."""
    no_ops: int = 0
    """So many entries in a larger space, where leaders write their no-op and nothing else; 0: the
    configuration's own."""


CONFIGURATIONS = ("power", "replays", "terms", "reads", "wipe", "jump", "damage", "five")

MUTANTS = (
    Mutant("hold votes", "power", "OneLeaderATerm"),
    Mutant("hold acks", "power", "NothingAcknowledgedIsLost"),
    Mutant("own copy", "power", "NothingAcknowledgedIsLost"),
    Mutant("stamp", "replays", "NothingAcknowledgedIsLost"),
    Mutant("append normalisation", "replays", "NothingAcknowledgedIsLost"),
    Mutant("answer what matched", "replays", "NothingAcknowledgedIsLost"),
    Mutant("commit what matched", "replays", "StateMachineSafety"),
    Mutant("log check", "replays", "LeaderCompleteness"),
    Mutant("one vote a voter", "five", "OneLeaderATerm"),
    Mutant("identity", "wipe", "OneLeaderATerm"),
    Mutant("confirm reads", "reads", "NoStaleRead"),
    Mutant("no-op first", "reads", "NoStaleRead"),
    Mutant("a round of its own", "reads", "NoStaleRead"),
    Mutant("stamp of reads", "reads", "NoStaleRead"),
    Mutant("jump over what is held", "jump", "NothingAcknowledgedIsLost"),
    Mutant("ask every voter", "damage", "OneLeaderATerm", no_ops=2),
)


class Bounds(NamedTuple):
    """How far a configuration goes."""

    nodes: int
    terms: int
    entries: int
    faults: str

    def __str__(self) -> str:
        faults = f", {self.faults}" if self.faults else ""
        return f"{self.nodes} nodes, {self.terms} terms, {self.entries} entries{faults}"


def configuration(name: str) -> str:
    """Return a configuration's text."""
    return Path(MODEL / f"{name}.cfg").read_text(encoding="utf-8")


def mutated(mutant: Mutant) -> str:
    """Return a mutant's configuration: the rule dropped, and the one invariant that it breaks.

    One, since the others would end the search before it shows what the rule is for.
    """
    text = configuration(mutant.configuration)
    assert "Drop = {}" in text
    text = text.replace("Drop = {}", f'Drop = {{"{mutant.rule}"}}')
    if mutant.no_ops:
        text = bounded(text, terms=bounds_of(text).terms, entries=mutant.no_ops)
        text = text.replace("INVARIANTS", "CONSTRAINT NoOpsOnly\nINVARIANTS")
    return f"{text.partition('INVARIANTS')[0]}INVARIANT {mutant.breaks}\n"


def bounded(text: str, *, terms: int, entries: int) -> str:
    """Return a configuration's text with other bounds."""
    text = re.sub(r"MaxTerm = \d+", f"MaxTerm = {terms}", text)
    return re.sub(r"MaxLog = \d+", f"MaxLog = {entries}", text)


def bounds_of(text: str) -> Bounds:
    """Read how far a configuration goes."""

    def constant(name: str) -> str:
        found = re.search(rf"^ *{name} = (.*)$", text, re.MULTILINE)
        assert found is not None, f"{name} is missing"
        return found[1]

    faults = constant("Faults").strip("{}").replace('"', "")
    return Bounds(
        len(constant("Nodes").split(",")), int(constant("MaxTerm")), int(constant("MaxLog")), faults
    )


def invariants_of(text: str) -> list[str]:
    """Return the invariants that a configuration names."""
    return text.partition("INVARIANTS")[2].split()


def rules_of_the_specification() -> set[str]:
    """Return the rules that the specification can go without."""
    return set(re.findall(r'Keeps\("([^"]+)"\)', (MODEL / "Guard.tla").read_text(encoding="utf-8")))
