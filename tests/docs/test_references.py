"""A name or number that stands in code or docs is defined in this repository."""

import re
import subprocess
from functools import cache
from pathlib import Path

from tests.docs.source import ROOT
from tests.mutants.table import MUTANTS

TEXT = {".py", ".md", ".tla", ".cfg", ".txt", ".toml", ".json", ".yml", ""}
OUTSIDE = re.compile(
    r"\bF-\d{2}\b|\bspec's\b|\bof the spec\b|\bDESIGN\b|\bof issue \d|\bissue #?\d+\b"
)
"""Names of papers that whoever reads the repository does not have."""
INVARIANT = re.compile(r"\bI\d{1,2}\b")


@cache
def texts() -> dict[Path, str]:
    """Every file of text that git knows."""
    known = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    paths = [ROOT / name for name in known if Path(name).suffix in TEXT]
    held = {path: path.read_bytes() for path in paths if path.is_file() and path != Path(__file__)}
    # A file of a kept folder may have no suffix either.
    return {path: data.decode() for path, data in held.items() if b"\0" not in data}


def defined(page: str, row: str) -> set[str]:
    return set(re.findall(row, (ROOT / "docs" / page).read_text(), re.MULTILINE))


def test_nothing_refers_to_papers_outside() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path, text in texts().items()
        for match in OUTSIDE.finditer(text)
    ]
    assert found == []


def test_every_invariant_is_defined() -> None:
    numbers = defined("simulation.md", r"^\| (I\d+) \|")
    assert numbers == {f"I{n}" for n in range(1, len(numbers) + 1)}
    unknown = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path, text in texts().items()
        for match in INVARIANT.finditer(text)
        if match[0] not in numbers
    }
    assert unknown == set()


def test_a_mutant_breaks_promises_and_invariants_that_are_defined() -> None:
    known = defined("safety.md", r"^### (\d+)\. ") | defined("simulation.md", r"^\| ([A-Z]\d+) \|")
    unknown = [
        f"{name}: {one}"
        for name, mutant in MUTANTS.items()
        for one in mutant.promise.split(", ")
        if one not in known
    ]
    assert unknown == []


def test_each_promise_names_its_code_and_its_proof() -> None:
    page = (ROOT / "docs" / "safety.md").read_text()
    sections = re.split(r"^### (?=\d+\. )", page, flags=re.MULTILINE)
    assert len(sections) == 17
    for section in sections[1:]:
        code, _, proof = section.partition("\nProof:\n")
        assert re.search(r"\nCode:\n\n- `[a-z_]+/", code), section[:40]
        assert re.search(r"^- `tests/", proof, re.MULTILINE), section[:40]
