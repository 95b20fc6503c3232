"""Writes a run's history as JSON lines, for other checkers; see `tests.checkers.history`.

Rule: a failed run is exported too. If it failed before the reference had read a log, the history
has no effects, and its log's start is above all offsets.
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
