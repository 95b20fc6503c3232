"""The configurations that TLC explores, and the mutants that it must refuse.

Rule: a configuration is a file in model/, which anybody can run by hand. A mutant is a
configuration with one rule named in `Drop`. It names the invariant that then breaks. A stretched
configuration asks of the clocks or of a deposed leader more than the protocol allows for: it must
be refused too, else the bounds that the specification states are not the bounds.
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


class Stretched(NamedTuple):
    """A configuration beyond what the protocol can bear."""

    configuration: str
    constant: str
    beyond: str
    """The constant's value there."""
    breaks: str


GUARD_CONFIGURATIONS = ("power", "replays", "terms", "reads", "wipe", "jump", "damage", "five")
LEASES_CONFIGURATIONS = ("leases", "clocks", "drift", "standby", "bulks")
VOTERS_CONFIGURATIONS = ("late", "shrink", "grow", "replace")
CONFIGURATIONS = GUARD_CONFIGURATIONS + LEASES_CONFIGURATIONS + VOTERS_CONFIGURATIONS

GUARD_MUTANTS = (
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
LEASES_MUTANTS = (
    Mutant("count from the sending", "leases", "FencedNeverServes"),
    Mutant("full sessions", "leases", "FencedNeverServes"),
    Mutant("check after a stall", "leases", "FencedNeverServes"),
    Mutant("fenced once decided", "leases", "FencedNeverServes"),
    Mutant("wait for the confirmation", "standby", "FencedNeverServes"),
    Mutant("note what is confirmed", "standby", "FencedNeverServes"),
    Mutant("check before a confirmation", "standby", "FencedNeverServes"),
    Mutant("the leader's word", "standby", "FencedNeverServes"),
    Mutant("epoch of a bulk", "standby", "FencedNeverServes"),
    Mutant("epoch of a confirmation", "standby", "FencedNeverServes"),
    Mutant("life of a standby", "standby", "FencedNeverServes"),
)
VOTERS_MUTANTS = (
    Mutant("one change at a time", "late", "WhoCanWinHasAll"),
    Mutant("votes of voters", "shrink", "WhoCanWinHasAll"),
    Mutant("catch up first", "grow", "MajorityHolds"),
    Mutant("in force when appended", "late", "WhoCanWinHasAll"),
    Mutant("acknowledgements of voters", "shrink", "WhoCanWinHasAll"),
    Mutant("an entry of its own first", "shrink", "WhoCanWinHasAll"),
    Mutant("one voter", "replace", "WhoCanWinHasAll"),
    Mutant("a leader stays", "shrink", "WhoCanWinHasAll"),
    Mutant("a majority stays", "late", "MajorityHolds"),
    Mutant("directories", "replace", "WhoCanWinHasAll"),
)
MUTANTS = GUARD_MUTANTS + LEASES_MUTANTS + VOTERS_MUTANTS

STRETCHED = (
    Stretched("leases", "Overlap", "2", "FencedNeverServes"),
    Stretched("clocks", "BrokerRates", "{3, 5}", "FencedNeverServes"),
    Stretched("drift", "BrokerRates", "{8}", "FencedNeverServes"),
)


class Bounds(NamedTuple):
    """How far a configuration of the guard goes."""

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


def specification_of(name: str) -> str:
    """Return the specification that a configuration is of."""
    if name in VOTERS_CONFIGURATIONS:
        return "Voters"
    return "Leases" if name in LEASES_CONFIGURATIONS else "Guard"


def module_of(name: str) -> str:
    """Return the module that TLC runs for a configuration."""
    specification = specification_of(name)
    return specification if specification == "Leases" else f"{specification}Bounds"


def stretched(beyond: Stretched) -> str:
    """Return the text of a configuration beyond its bounds, with the invariant that it breaks."""
    text = configuration(beyond.configuration)
    text, changed = re.subn(
        rf"^( *{beyond.constant} = ).*$", rf"\g<1>{beyond.beyond}", text, flags=re.MULTILINE
    )
    assert changed == 1, f"{beyond.constant} is not in {beyond.configuration}"
    return f"{text.partition('INVARIANTS')[0]}INVARIANT {beyond.breaks}\n"


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


def bounds_text(name: str, text: str) -> str:
    """Say how far a configuration goes, in a line."""
    if specification_of(name) == "Guard":
        return str(bounds_of(text))
    if specification_of(name) == "Voters":
        return _voters_bounds_text(text)
    lease, session = _constant(text, "Lease"), _constant(text, "Session")
    epochs, overlap = _constant(text, "MaxEpoch"), _constant(text, "Overlap")
    bulks = _constant(text, "MaxBulks")
    return f"lease {lease} of {session}, {epochs} epochs, overlap {overlap}, {bulks} bulks"


def _voters_bounds_text(text: str) -> str:
    nodes, formed = (len(_constant(text, name).split(",")) for name in ("Nodes", "Formed"))
    bounds = bounds_of(text)
    changes = _constant(text, "MaxChanges")
    faults = f", {bounds.faults}" if bounds.faults else ""
    return (
        f"{formed} voters of {nodes} nodes, {bounds.terms} terms, {bounds.entries} entries, "
        f"{changes} changes{faults}"
    )


def _constant(text: str, name: str) -> str:
    found = re.search(rf"^ *{name} = (.*)$", text, re.MULTILINE)
    assert found is not None, f"{name} is missing"
    return found[1]


def bounds_of(text: str) -> Bounds:
    """Read how far a configuration of the guard goes."""

    def constant(name: str) -> str:
        return _constant(text, name)

    faults = constant("Faults").strip("{}").replace('"', "")
    return Bounds(
        len(constant("Nodes").split(",")), int(constant("MaxTerm")), int(constant("MaxLog")), faults
    )


def invariants_of(text: str) -> list[str]:
    """Return the invariants that a configuration names."""
    return text.partition("INVARIANTS")[2].split()


def rules_of(specification: str) -> set[str]:
    """Return the rules that a specification can go without."""
    text = (MODEL / f"{specification}.tla").read_text(encoding="utf-8")
    return set(re.findall(r'Keeps\("([^"]+)"\)', text))
