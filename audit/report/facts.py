"""What a report is made of: rows of the audit's jobs, and the results of the verification.

Rule: this module doesn't know how a row was computed or how it will be drawn. Rows are iterables in
the order of `audit.tables`. There may be many, so a section keeps only sums and the worst few.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from audit.report.period import Period

Rows = Iterable[tuple[Any, ...]]


class VerifiedReplica(NamedTuple):
    """One replica, verified."""

    name: str
    location: str
    segments: int
    batches: int
    records: int
    history_from: int
    log_end: int
    """Where its log ends, or its first bad place."""
    head: str
    """Chain hash at the log's end, in hexadecimal."""
    log_is_sound: bool
    problems: tuple[str, ...] = ()
    """All that is wrong with it on its own, the first bad place first."""
    notes: tuple[str, ...] = ()
    checkpoints: int = 0
    proved: int = 0
    """How many checkpoints are what the log replays to."""
    state_hash: str = ""
    """Of what brokers share, at `replayed_to`; empty when the log wasn't replayed."""
    replayed_to: int = 0

    @property
    def ok(self) -> bool:
        """Nothing is wrong with it on its own."""
        return not self.problems


class VerifiedReplicas(NamedTuple):
    """The results for all replicas, each by itself and compared with each other."""

    cluster_id: str
    replicas: tuple[VerifiedReplica, ...]
    common_offset: int
    """The highest offset that all sound ones hold."""
    problem: str
    """Why they disagree; empty when they don't."""
    heads: tuple[str, ...] = ()
    """`OFFSET:HASH` that were written down earlier, and looked for in each."""

    @property
    def ok(self) -> bool:
        """Every replica is sound, and they agree."""
        return not self.problem and all(replica.ok for replica in self.replicas)

    @property
    def head(self) -> tuple[int, str] | None:
        """Offset and chain hash that every sound log holds; None when they disagree."""
        sound = [replica for replica in self.replicas if replica.log_is_sound]
        if self.problem or not sound:
            return None
        shortest = min(sound, key=lambda replica: replica.log_end)
        return shortest.log_end, shortest.head


class Facts(NamedTuple):
    """All that the page says; the fields named as tables hold their rows."""

    title: str
    made_ms: int
    """When the report was made, by the clock of the machine that made it."""
    period: Period
    end_offset: int
    """The state and the history end here."""
    answered_by: str
    """The replica from which the rows come."""
    verified: VerifiedReplicas
    log: Rows
    """Only rows that are not settled are read."""
    partition_intervals: Rows
    """Read more than once. Partitions come in any order, the intervals of one partition in
    theirs."""
    broker_intervals: Rows
    changes: Rows
    privileged: Rows
    integrity: Rows
    divergence: Rows
    notes: tuple[str, ...] = ()
    """What the reader of the page must know first."""
