"""The audit's jobs in plain Python, in one process without Spark. `audit.spark` has the same jobs.

Rule: each job is a function from a question (replicas, up to which offset) to the ordered rows of
its table in `audit.tables`. The code is independent of the Spark engine and as plain as possible.
If the two engines differ, this one explains what is meant. Memory grows with the state, not with
the log. A job whose table may be larger than the state yields its rows one by one: `log`,
`availability`, `privileged`, `attempts`, and, sorted outside of memory, `partition_events` and
`partition_intervals`. The others return a list.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from audit.embedded.attempts import attempts
from audit.embedded.availability import availability
from audit.embedded.batches import batches
from audit.embedded.broker_intervals import broker_intervals
from audit.embedded.changes import changes
from audit.embedded.divergence import divergence
from audit.embedded.grants import grants
from audit.embedded.integrity import integrity
from audit.embedded.log import log
from audit.embedded.partition_events import partition_events
from audit.embedded.partition_intervals import partition_intervals
from audit.embedded.privileged import privileged
from audit.embedded.state import state
from audit.places.replicas import Replica
from audit.reading.feed import OnProgress, Question

Row = tuple[Any, ...]
Job = Callable[[Question], Iterable[Row]]

JOBS: Final[dict[str, Job]] = {
    "log": log,
    "partition_events": partition_events,
    "partition_intervals": partition_intervals,
    "broker_intervals": broker_intervals,
    "availability": availability,
    "changes": changes,
    "privileged": privileged,
    "grants": grants,
    "attempts": attempts,
    "batches": batches,
    "integrity": integrity,
    "divergence": divergence,
    "state": state,
}


def run_job(
    name: str,
    replicas: Sequence[Replica],
    *,
    up_to: int | None = None,
    on_progress: OnProgress | None = None,
    notes: list[str] | None = None,
) -> list[Row]:
    """Return the ordered rows of a job, one of `audit.tables.BY_NAME`. The rest as `job_rows`."""
    return list(job_rows(name, replicas, up_to=up_to, on_progress=on_progress, notes=notes))


def job_rows(
    name: str,
    replicas: Sequence[Replica],
    *,
    up_to: int | None = None,
    on_progress: OnProgress | None = None,
    notes: list[str] | None = None,
) -> Iterator[Row]:
    """Yield the ordered rows of a job, one of `audit.tables.BY_NAME`.

    `up_to`: use the batches that begin before this offset. `on_progress` is called with the offset
    reached and the end. `notes` receives sentences for the user. Raises KeyError for an unknown
    job, NoLogError, LedgerError, CheckpointError, ReplayError, OSError.
    """
    yield from JOBS[name](Question(replicas, up_to, on_progress, notes))
