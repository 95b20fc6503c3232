"""The audit's jobs in plain Python: one process, no Spark, the twins of `audit.spark`.

Rule: each job is a function from a question (replicas, up to which offset) to the rows of its table
in `audit.tables`, in its order, written apart from Spark's and as plainly as can be: where the two
differ, this one is to be read. Memory is bounded by the state and by the rows, not by the log.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from audit.embedded.availability import availability
from audit.embedded.batches import batches
from audit.embedded.broker_intervals import broker_intervals
from audit.embedded.changes import changes
from audit.embedded.divergence import divergence
from audit.embedded.integrity import integrity
from audit.embedded.log import log
from audit.embedded.partition_events import partition_events
from audit.embedded.partition_intervals import partition_intervals
from audit.embedded.privileged import privileged
from audit.embedded.state import state
from audit.places.replicas import Replica
from audit.reading.feed import OnProgress, Question

Row = tuple[Any, ...]
Job = Callable[[Question], list[Row]]

JOBS: Final[dict[str, Job]] = {
    "log": log,
    "partition_events": partition_events,
    "partition_intervals": partition_intervals,
    "broker_intervals": broker_intervals,
    "availability": availability,
    "changes": changes,
    "privileged": privileged,
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
    """Return the rows of a job, one of `audit.tables.BY_NAME`, ordered as there.

    `up_to`: of the batches that begin before this offset. `on_progress` gets the offset that was
    reached and the end; `notes` takes sentences that the asker should see. Raises KeyError for
    another name, NoLogError, LedgerError, CheckpointError, ReplayError, OSError.
    """
    return JOBS[name](Question(replicas, up_to, on_progress, notes))
