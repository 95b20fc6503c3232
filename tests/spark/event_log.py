"""Reads Spark's event log: which jobs, stages and tasks there were, by description."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

DESCRIPTION = "spark.job.description"


class JobCount(NamedTuple):
    """What Spark did for one description."""

    jobs: int
    stages: int
    tasks: int
    decoding_tasks: int
    """Tasks of the first stage, which reads the log."""
    seconds: float
    """From the first job's begin to the last one's end."""


def events(folder: Path) -> list[dict[str, Any]]:
    """Return all events that were logged in a folder."""
    return [
        msgspec.json.decode(line)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith((".", "appstatus"))
        for line in path.read_bytes().splitlines()
    ]


def counted(logged: list[dict[str, Any]]) -> dict[str, JobCount]:
    """Count by description, in the order in which they began."""
    begun = [each for each in logged if each["Event"] == "SparkListenerJobStart"]
    ended = {
        each["Job ID"]: each["Completion Time"]
        for each in logged
        if each["Event"] == "SparkListenerJobEnd"
    }
    tasks = Counter(each["Stage ID"] for each in logged if each["Event"] == "SparkListenerTaskEnd")
    found: dict[str, list[dict[str, Any]]] = {}
    for job in begun:
        words = (job.get("Properties") or {}).get(DESCRIPTION) or ""
        found.setdefault(words, []).append(job)
    return {words: _of(jobs, tasks, ended) for words, jobs in found.items()}


def _of(jobs: list[dict[str, Any]], tasks: Counter[int], ended: dict[int, int]) -> JobCount:
    stages = sorted({stage for job in jobs for stage in job["Stage IDs"]})
    begin = min(job["Submission Time"] for job in jobs)
    end = max(ended[job["Job ID"]] for job in jobs)
    count = sum(tasks[stage] for stage in stages)
    return JobCount(len(jobs), len(stages), count, tasks[stages[0]], (end - begin) / 1_000)
