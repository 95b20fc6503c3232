"""A run's history as JSON lines, for a checker that is not ours; see `tests.checkers.history`.

Rule: what was asked and told is exported also of a run that failed. Where it failed before the
reference had read a log, the history has no effects, and says that its log begins past everything.
"""

from pathlib import Path
from typing import Any

from tests.checkers.history import Log, to_lines

PAST_EVERYTHING = 2**63 - 1


def export(file: Path, cluster: Any, run: dict[str, Any]) -> None:
    """Write the history of a cluster's run, one JSON object a line."""
    log = cluster.judgement.log or Log(PAST_EVERYTHING, {}, [])
    lines = to_lines(run, cluster.answers.operations, log)
    file.write_text("".join(f"{line}\n" for line in lines))
