"""The history of a report: all that its sections count, from one reading of the log.

Rule: the rows are those of the jobs in `audit.embedded`, computed by the same trackers. What grows
with the log goes by; what is kept grows with the callers, the brokers and the privileged changes.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final

from audit.embedded.attempts import attempts_row
from audit.embedded.broker_intervals import BrokerTracker
from audit.embedded.days import day_of
from audit.embedded.log import log_row
from audit.embedded.partition_intervals import PartitionTracker
from audit.embedded.privileged import privileged_row
from audit.findings.finding import Finding, newest_of_each, ranked
from audit.findings.log_findings import LogWatch
from audit.findings.rules import RuleSet
from audit.questions.names import Names
from audit.questions.subjects import resource
from audit.reading.callers import caller
from audit.reading.feed import Beginning, Feed, Question
from audit.reading.settling import Logged, Moment, moments, settled
from audit.report.details import MOST, RecordAt
from audit.report.facts import ChangeSum, HistoryTables, Row, ShownRecord
from ledger.batch import BatchHeader
from metadata.codec import decode_records
from metadata.messages.records_json import record_type_name
from metadata.records import Record

_FAR: Final = 4_096
"""If the next record that is wanted is so many offsets away, reading begins anew there."""


class LogHistory:
    """The history in the longest of some replicas, up to an offset."""

    def __init__(self, question: Question, rules: RuleSet) -> None:
        """`rules`: what makes a finding."""
        self._question = question
        self._rules = rules
        self._names = Names()

    def read(self, on_interval: Callable[[Row], None]) -> HistoryTables:
        """Read the log once; see `audit.report.facts.ReportHistory`."""
        feed = Feed(self._question)
        beginning = feed.beginning()
        names = self._names = Names(beginning.records)
        partitions, brokers = PartitionTracker(), BrokerTracker()
        changes = _Changes()
        watch = LogWatch(self._rules)
        watch.maker.begin(beginning.records)
        findings: list[Finding] = []
        unsettled: list[Row] = []
        privileged: list[Row] = []
        broker_rows: list[Row] = []
        attempts: list[Row] = []
        for base, time_ms, records, moment in _steps(feed, beginning, names, unsettled):
            for interval in partitions.step(base, time_ms, records):
                on_interval(interval)
            broker_rows += brokers.step(base, time_ms, records)
            if moment is None:
                continue
            changes.add(moment)
            findings += watch.step([moment])
            for logged in moment.records:
                row = privileged_row(logged, names)
                if row is not None:
                    privileged.append(row)
                tried = attempts_row(logged)
                if tried is not None:
                    attempts.append(tried)
        for interval in partitions.still_open():
            on_interval(interval)
        broker_rows += brokers.still_open()
        broker_rows.sort(key=itemgetter(0, 1))
        privileged.sort(key=itemgetter(0))
        findings += watch.watcher.step([], feed.horizon_ms)
        findings += watch.watcher.still_open()
        worst_first = ranked(newest_of_each(findings))
        return HistoryTables(
            unsettled, broker_rows, changes.sums(), privileged, worst_first, attempts
        )

    def records(self, places: Sequence[RecordAt]) -> list[ShownRecord]:
        """Return the records at these places; see `audit.report.facts.ReportHistory`."""
        reader = Feed(self._question).reader
        waiting = deque(places)
        found: list[ShownRecord] = []
        while waiting and waiting[0].offset < reader.log_start:
            found.append(ShownRecord(waiting.popleft().offset))
        while waiting:
            for batch in reader.batches(waiting[0].offset):
                header = batch.header
                if waiting[0].offset < header.end_offset:
                    records = decode_records(batch.records)
                    while waiting and waiting[0].offset < header.end_offset:
                        found.append(self._found(waiting.popleft(), header, records))
                if not waiting or waiting[0].offset - header.end_offset > _FAR:
                    break
        return found

    def _found(
        self, place: RecordAt, header: BatchHeader, records: Sequence[Record]
    ) -> ShownRecord:
        """Return the record of a batch that is meant by a place."""
        number = place.offset - header.base_offset
        if place.subject:
            for other in range(number, len(records)):
                if resource(records[other], self._names) == place.subject:
                    number = other
                    break
        return self._shown(header.base_offset + number, header, records[number])

    def _shown(self, offset: int, header: BatchHeader, record: Record) -> ShownRecord:
        said = header.provenance
        return ShownRecord(
            offset,
            header.timestamp_ms,
            caller(
                said.principal,
                said.on_behalf_of,
                said.auth_method,
                said.client_address,
                header.acted_as,
            ),
            said.operation,
            record_type_name(type(record)),
            resource(record, self._names) or "",
            said.reason,
        )


def _steps(
    feed: Feed, beginning: Beginning, names: Names, unsettled: list[Row]
) -> Iterator[tuple[int, int, Sequence[Record], Moment | None]]:
    """Yield what becomes true: the facts of the beginning first, which are no moment."""
    if beginning.records:
        yield beginning.fact_offset, beginning.time_ms, beginning.records, None
    logged = _learned(settled(feed.batches()), names, unsettled)
    for moment in moments(logged):
        if moment.base >= beginning.offset:
            yield moment.base, moment.time_ms, [one.record for one in moment.records], moment


def _learned(logged: Iterable[Logged], names: Names, unsettled: list[Row]) -> Iterator[Logged]:
    """Learn the names of all records; keep the rows of those that don't count, yield the others."""
    for one in logged:
        names.learn(one.record)
        if one.settled_base is None:
            unsettled.append(log_row(one, names))
        else:
            yield one


_Key = tuple[str, str, str, str, str]
"""Day, principal, authentication, address, operation."""


class _Sum:
    """Records of one type by one caller on one day."""

    __slots__ = ("count", "first", "last", "offsets")

    def __init__(self, offset: int, time_ms: int) -> None:
        self.count = 0
        self.first = self.last = (offset, time_ms)
        self.offsets: list[int] = []


class _Changes:
    """The sums of `changes`, with authentication and address."""

    def __init__(self) -> None:
        self._sums: dict[_Key, dict[type[Record], _Sum]] = {}
        self._header: BatchHeader | None = None
        self._of_caller: dict[type[Record], _Sum] = {}

    def add(self, moment: Moment) -> None:
        for offset, header, record, _, _, _ in moment.records:
            if header is not self._header:
                self._turn_to(header)
            kind, time_ms = type(record), header.timestamp_ms
            found = self._of_caller.get(kind)
            if found is None:
                found = self._of_caller[kind] = _Sum(offset, time_ms)
            found.count += 1
            found.last = (offset, time_ms)
            if found.count <= MOST:
                found.offsets.append(offset)

    def _turn_to(self, header: BatchHeader) -> None:
        """The records of one batch have one caller."""
        said = header.provenance
        key = (
            day_of(header.timestamp_ms),
            said.principal,
            said.auth_method,
            said.client_address,
            said.operation,
        )
        self._header = header
        self._of_caller = self._sums.setdefault(key, {})

    def sums(self) -> list[ChangeSum]:
        return [
            _change_sum(key, kind, each)
            for key, by_type in self._sums.items()
            for kind, each in by_type.items()
        ]


def _change_sum(key: _Key, kind: type[Record], found: _Sum) -> ChangeSum:
    (first_offset, first_ms), (last_offset, last_ms) = found.first, found.last
    return ChangeSum(
        *key,
        type=record_type_name(kind),
        records=found.count,
        first_offset=first_offset,
        last_offset=last_offset,
        first_ms=first_ms,
        last_ms=last_ms,
        offsets=tuple(found.offsets),
    )
