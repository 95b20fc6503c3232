"""What a report is made of: rows of the audit's jobs, and what verification found.

Rule: nothing here knows how a row was computed or how it will be drawn. Rows come as iterables in
the order of `audit.tables`, and may be many: whoever reads them keeps sums and the
worst few.
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
    """All replicas, on their own and held against each other."""

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
    """When the report was made, by the clock of whoever made it."""
    period: Period
    end_offset: int
    """State and history are told up to here."""
    answered_by: str
    """The replica whose rows these are."""
    verified: VerifiedReplicas
    log: Rows
    """Only those that are not settled are read."""
    partition_intervals: Rows
    """Read more than once, and in any order of partitions; those of one are in their order."""
    broker_intervals: Rows
    changes: Rows
    privileged: Rows
    integrity: Rows
    divergence: Rows
    notes: tuple[str, ...] = ()
    """What whoever reads the page must know first."""
