"""The recorded killers of each mutant: `kept.json`, by name, the quickest first.

Rule: one killer is enough. A change of the product changes what happens in every seed, so a seed
may no longer kill. Then the next one is tried, and at last a directed test, which does not change.
`python -m tests.mutants --search --keep` finds seeds anew and writes them here.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.mutants.mutant import DirectedTest, Seed, SeedSearch

FILE = Path(__file__).parent / "kept.json"
Killer = Seed | DirectedTest


def read_killers() -> dict[str, list[Killer]]:
    """Return what is kept, by the name of the mutant."""
    kept = json.loads(FILE.read_text())
    return {name: [_killer(fields) for fields in killers] for name, killers in kept.items()}


def write_killers(killers: Mapping[str, Sequence[Killer]]) -> None:
    """Keep these, and no others."""
    kept = {name: [_fields(killer) for killer in some] for name, some in killers.items()}
    FILE.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def _killer(fields: dict[str, Any]) -> Killer:
    if "test" in fields:
        return DirectedTest(fields["test"], fields["says"])
    search = SeedSearch(fields["simulator"], fields.get("kind", ""), fields.get("nodes"))
    return Seed(search, fields["seed"], fields["says"], fields.get("faults_s"))


def _fields(killer: Killer) -> dict[str, Any]:
    if isinstance(killer, DirectedTest):
        return {"test": killer.node, "says": killer.says}
    fields = {
        "simulator": killer.search.simulator,
        "kind": killer.search.kind,
        "nodes": killer.search.nodes,
        "seed": killer.number,
        "faults_s": killer.faults_s,
        "says": killer.says,
    }
    return {name: value for name, value in fields.items() if value not in ("", None)} | {
        "says": killer.says
    }
