"""Reads Spark's event log: which jobs, stages and tasks there were, for which description."""

from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

_DESCRIPTION: Final = "spark.job.description"


class JobCount(NamedTuple):
    """What Spark did for one description."""

    jobs: int
    tasks: tuple[int, ...]
    """By stage, in the order of the stages. The first one decodes."""
    stage_seconds: tuple[float, ...]
    """How long each stage took."""
    task_seconds: tuple[float, ...]
    """How long each stage's tasks took together."""
    seconds: float
    """From the first job's begin to the last one's end."""

    @property
    def decoding_tasks(self) -> int:
        return self.tasks[0]


def events(folder: Path) -> list[dict[str, Any]]:
    """Return all events that were logged in a folder, uncompressed."""
    return [
        msgspec.json.decode(line)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith((".", "appstatus"))
        for line in path.read_bytes().splitlines()
    ]


def settings(folder: Path) -> dict[str, str]:
    """Return the settings with which Spark logs events into a folder that exists."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def counted(logged: list[dict[str, Any]]) -> dict[str, JobCount]:
    """Count by description, in the order in which they began."""
    found: dict[str, list[dict[str, Any]]] = {}
    for job in _of(logged, "JobStart"):
        words = (job.get("Properties") or {}).get(_DESCRIPTION) or ""
        found.setdefault(words, []).append(job)
    return {words: _count(jobs, logged) for words, jobs in found.items()}


def _count(jobs: list[dict[str, Any]], logged: list[dict[str, Any]]) -> JobCount:
    ended = {each["Job ID"]: each["Completion Time"] for each in _of(logged, "JobEnd")}
    took = {each["Stage ID"]: 0.0 for job in jobs for each in job["Stage Infos"]}
    tasks: Counter[int] = Counter()
    busy = dict(took)
    for each in _of(logged, "StageCompleted"):
        stage = each["Stage Info"]
        if stage["Stage ID"] in took:
            took[stage["Stage ID"]] = _s(stage["Submission Time"], stage["Completion Time"])
    for each in _of(logged, "TaskEnd"):
        if each["Stage ID"] in took:
            tasks[each["Stage ID"]] += 1
            info = each["Task Info"]
            busy[each["Stage ID"]] += _s(info["Launch Time"], info["Finish Time"])
    stages = sorted(took)
    return JobCount(
        len(jobs),
        tuple(tasks[stage] for stage in stages),
        tuple(took[stage] for stage in stages),
        tuple(busy[stage] for stage in stages),
        _s(min(job["Submission Time"] for job in jobs), max(ended[job["Job ID"]] for job in jobs)),
    )


def _of(logged: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in logged if each["Event"] == f"SparkListener{kind}"]


def _s(begin_ms: int, end_ms: int) -> float:
    return (end_ms - begin_ms) / 1_000
