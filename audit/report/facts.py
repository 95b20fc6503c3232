"""What a report is made of: the history's tables, and the results of the verification.

Rule: this module doesn't know how a row was computed or how it will be drawn. Rows have the columns
of `audit.tables`. There may be too many intervals of partitions to hold, so they go by once.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from audit.findings.finding import Finding
from audit.findings.rules import FindingRule
from audit.report.details import RecordAt
from audit.report.period import Period

Row = tuple[Any, ...]
Rows = Iterable[Row]


class ChangeSum(NamedTuple):
    """What one caller did on one day, in one way, to one type of record."""

    day: str
    principal: str
    auth_method: str
    client_address: str
    operation: str
    type: str
    records: int
    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int
    offsets: tuple[int, ...] = ()
    """Of the first few records."""


class ShownRecord(NamedTuple):
    """One record as the page shows it."""

    offset: int
    timestamp_ms: int = 0
    caller: str = ""
    """Principal, authentication and address, as `audit.reading.callers.caller` writes them."""
    operation: str = ""
    type: str = ""
    """Empty if the record is not in the log, which begins after it."""
    subject: str = ""
    reason: str = ""


class HistoryTables(NamedTuple):
    """What was read besides the intervals of partitions."""

    unsettled: Sequence[Row]
    """Rows of `audit.tables.LOG` that don't count."""
    broker_intervals: Sequence[Row]
    """In the order of their key."""
    changes: Sequence[ChangeSum]
    privileged: Sequence[Row]
    findings: Sequence[Finding] = ()
    """The worst first."""
    attempts: Sequence[Row] = ()
    """In the log's order."""


class ReportHistory(Protocol):
    """The part of a log that a report is about."""

    def read(self, on_interval: Callable[[Row], None]) -> HistoryTables:
        """Read it once. `on_interval` gets the rows of `partition_intervals`.

        Partitions come in any order, the intervals of one partition in theirs. Raises LedgerError,
        CheckpointError, NoLogError, OSError.
        """

    def records(self, places: Sequence[RecordAt]) -> list[ShownRecord]:
        """Return the records at these places, which are sorted. Called after `read`.

        A place before the log's start gives a record without a type. Raises LedgerError, OSError.
        """


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
    history: ReportHistory
    integrity: Rows
    divergence: Rows
    where: str = ""
    """The log, as it was named to the command."""
    log_start: int = 0
    """The first offset of the log that answers."""
    notes: tuple[str, ...] = ()
    """What the reader of the page must know first."""
    rules: tuple[FindingRule, ...] = ()
    """The rules of the findings."""
    timelines: tuple[str, ...] = ()
    """Things whose timelines were asked for: `partition:orders-3`, `topic:orders`, `broker:3`."""
