"""What Kafka's test classes did on both sides, kept in outcomes.json.

Rule: numbers come from runs only. A class that runs again replaces its outcome of that side.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.kafka.kafkas_tests.reports import CaseEnd
from tests.kafka.kafkas_tests.running import ClassRun, Side

FILE: Final = Path(__file__).parent / "outcomes.json"
Outcome = dict[str, Any]
"""`passed`, `failed` … by count; `failures` and `notRun`: why, by test; `seconds`; `ended`;
`controllers`: so many of ours were started."""


def read_outcomes(path: Path = FILE) -> dict[str, dict[str, Outcome]]:
    """Return the outcomes by class and side."""
    if not path.exists():
        return {}
    found: dict[str, dict[str, Outcome]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def outcome_of(run: ClassRun) -> Outcome:
    """Return what is kept of a run."""
    counts = Counter(test.end for test in run.tests)
    return {
        "tests": len(run.tests),
        **{end.value: counts[end] for end in CaseEnd if counts[end]},
        "failures": {test.name: test.why for test in run.tests if test.end is CaseEnd.FAILED},
        "notRun": {test.name: test.why for test in run.tests if test.end is CaseEnd.NOT_RUN},
        "seconds": round(run.seconds),
        "ended": run.ended,
        "controllers": run.controllers,
    }


def keep(name: str, side: Side, run: ClassRun, path: Path = FILE) -> None:
    """Write down a run."""
    outcomes = read_outcomes(path)
    outcomes.setdefault(name, {})[side.value] = outcome_of(run)
    text = json.dumps(dict(sorted(outcomes.items())), indent=1, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
