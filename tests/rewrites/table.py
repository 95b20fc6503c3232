"""Runs all attacks against all parties, and writes the table.

python -m tests.rewrites.table          writes it into docs/rewrites.md
"""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.docs import source
from tests.docs.generate import table
from tests.rewrites import parties
from tests.rewrites.cases import ATTACKS, Attack

PAGE = source.ROOT / "docs" / "rewrites.md"
_MADE = re.compile(r"<!-- made: rewrites -->\n.*?<!-- end -->", re.DOTALL)


class Found(NamedTuple):
    """What the parties say of one attack."""

    attack: Attack
    verifier: parties.Said
    witness: parties.Said
    agent: parties.Said
    controllers: parties.Said


def found(attack: Attack, folder: Path) -> Found:
    """Run one attack."""
    histories = parties.Histories(attack)
    return Found(
        attack,
        parties.verifier(attack, histories, folder / "verifier"),
        parties.witness(attack, histories, folder / "witness"),
        parties.agent(attack, histories),
        parties.controllers(attack, histories, folder / "controllers"),
    )


def made(rows: list[Found]) -> str:
    """The page with these rows."""
    head = ("attack", "verifier", "witness", "agent", "controllers")
    cells = ((row.attack.name, *(each.text for each in row[1:])) for row in rows)
    text = f"<!-- made: rewrites -->\n{table(head, cells)}<!-- end -->"
    return _MADE.sub(lambda _: text, PAGE.read_text())


def main() -> int:
    """Run all attacks and write the page."""
    with TemporaryDirectory() as folder:
        rows = [found(each, Path(folder) / str(n)) for n, each in enumerate(ATTACKS)]
    PAGE.write_text(made(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
