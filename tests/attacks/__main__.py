"""Makes the attacks of SECURITY.md, and says of each row how many of its tests passed.

`make attacks`, or `python -m tests.attacks C4 A7` for some rows. The exit code is 0 if every test
of every row passed. A test that was skipped has shown nothing, so its row doesn't hold either.
"""

import argparse
import sys
from collections import Counter

import pytest

from tests.attacks.listed import ListedAttack, attacks


class Outcomes:
    """How the tests ended, by file and function: a function may have many cases."""

    def __init__(self) -> None:
        self.of: dict[tuple[str, str], Counter[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test when it ran, and before or behind it only what went wrong."""
        if report.when == "call" or report.outcome != "passed":
            file, _, name = report.nodeid.partition("::")
            function = name.rpartition("::")[2].partition("[")[0]
            self.of.setdefault((file, function), Counter())[report.outcome] += 1


def row_of(attack: ListedAttack, outcomes: Outcomes) -> tuple[bool, str]:
    """Tell whether an attack fails on us as it should, and the line that says so."""
    found = [outcomes.of.get(test, Counter()) for test in attack.tests]
    total = sum(found, Counter())
    holds = all(one["passed"] and one.total() == one["passed"] for one in found)
    count = ", ".join(f"{total[word]} {word}" for word in ("passed", "failed", "skipped"))
    lacking = [
        "::".join(test) for test, one in zip(attack.tests, found, strict=True) if not one["passed"]
    ]
    why = f": {', '.join(lacking)}" if lacking else ""
    return holds, f"{'holds' if holds else 'FAILS'} {attack.number:4}{count}{why}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("row", nargs="*", help="such as C4; none: all")
    wanted = parser.parse_args(arguments).row
    chosen = [one for one in attacks() if one.number in wanted or not wanted]
    if unknown := set(wanted) - {one.number for one in chosen}:
        sys.stderr.write(f"SECURITY.md has no attack {', '.join(sorted(unknown))}\n")
        return 2
    outcomes = Outcomes()
    ids = sorted({"::".join(test) for one in chosen for test in one.tests})
    code = pytest.main(["-q", "-n", "2", "--dist", "loadfile", *ids], plugins=[outcomes])
    rows = [row_of(one, outcomes) for one in chosen]
    print(*(line for _, line in rows), sep="\n")
    cases = sum((count for count in outcomes.of.values()), Counter[str]()).total()
    held = sum(holds for holds, _ in rows)
    print(f"{held} of {len(rows)} attacks hold; {len(ids)} tests, {cases} cases")
    return 0 if code == 0 and held == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
