"""The audit's jobs in plain Python: one process, no Spark, the twins of `audit.spark`.

Rule: each job is a function from replicas to rows of its table in `audit.tables`, in its order,
written apart from Spark's and as plainly as can be: where the two differ, this one is to be read.
Memory is bounded by the state and by the rows, not by the log.

Of several replicas the one with the longest log is asked (of equals the first), save by the jobs
that compare them: `batches`, `integrity`, `divergence`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from audit.places import Replica

Row = tuple[Any, ...]
Job = Callable[..., list[Row]]
"""`job(replicas, *, up_to=None, on_progress=None)`."""

JOBS: Final[dict[str, Job]] = {}


def run_job(
    name: str,
    replicas: Sequence[Replica],
    *,
    up_to: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Return the rows of a job, one of `audit.tables.BY_NAME`, ordered as there.

    `up_to`: of the batches that begin before this offset. `on_progress` gets the offset that was
    reached and the end. Raises KeyError for another name, NoLogError, LedgerError, OSError.
    """
    return JOBS[name](replicas, up_to=up_to, on_progress=on_progress)
