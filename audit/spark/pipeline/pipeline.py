"""The pipeline: keeps tables up to date as the log grows.

Rule: the log is taken in by micro-batches. Each is planned first, decoded once, folded in one Spark
job (`micro_batch`), committed once a table, and ends by writing what the next one needs
(`carried`). If one was killed, it runs again with the same plan and the same state, so it has the
same rows, and tables that were committed already stay as they are. Its cost grows with what is new,
and with the number of partitions, because each has a row for the newest day.

There is no Spark stream here: its checkpoint would be a second account of how far the log was read,
and its micro-batches cost more jobs than ours (ADR 0064).
"""

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from threading import Event
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from audit.findings.event_making import EventMaker
from audit.findings.events import in_log_order
from audit.findings.finding import Finding
from audit.findings.rule_files import builtin_rules
from audit.findings.rules import RuleSet
from audit.findings.watcher import Watcher
from audit.lake.commit import commit, committed_batch
from audit.lake.compaction import compact, vacuum
from audit.lake.files import DataFile, write_file
from audit.lake.place import LakePlace
from audit.lake.schemas import arrow_schema, rows_to_kept
from audit.places.remote import is_url
from audit.places.replicas import NoLogError, Replica
from audit.reading.first_checkpoint import first_checkpoint
from audit.spark.folds.carried import DAY_MS, day_text
from audit.spark.folds.checkpoint import beginning
from audit.spark.folds.cluster import ClusterFold, ClusterTables
from audit.spark.folds.slices import SliceReport
from audit.spark.folds.transactions import spans_of
from audit.spark.pipeline import micro_batch
from audit.spark.pipeline.carried_store import (
    Carried,
    CarriedStore,
    PipelineFolderError,
    PlannedRange,
)
from audit.spark.pipeline.micro_batch import DAYS, INTERVALS, BatchResult, MicroBatch
from audit.spark.source.reading import absolute, check_continues, open_longest, plan, sound_end
from audit.tables import (
    BROKER_INTERVALS,
    BRONZE,
    CHANGES,
    CONFIG_EVENTS,
    FINDINGS,
    KEPT,
    PRIVILEGED,
)
from ledger.reader import LedgerReader
from runtime.disk.real import RealDisk

RECORDS_PER_TRIGGER: Final = 1_000_000
_FOLLOW_S: Final = 5.0
_PARTS_A_CORE: Final = 2
_BROKERS: Final = f"silver/{BROKER_INTERVALS.name}"
_PRIVILEGED: Final = f"silver/{PRIVILEGED.name}"
_CONFIGS: Final = f"silver/{CONFIG_EVENTS.name}"
_CHANGES: Final = f"gold/{CHANGES.name}"

OnFindings = Callable[[Sequence[Finding], int], None]
OnProgress = Callable[[int, int], None]


def run_pipeline(
    spark: SparkSession,
    location: str,
    out: Path | str,
    *,
    follow: bool = False,
    rules: RuleSet | None = None,
    records_per_trigger: int = RECORDS_PER_TRIGGER,
    on_findings: OnFindings | None = None,
    on_progress: OnProgress | None = None,
    follow_s: float = _FOLLOW_S,
) -> Carried:
    """Take in what is new in a log; with `follow`, continue until the process is stopped.

    `out`: a folder, or a URL of object storage. Returns what was handed over last. `rules`: None
    means the built-in ones. `on_findings` is called with the findings that opened or closed, and
    the offset up to which the log was read; it gets each at least once. Its row in the table
    `findings` is there exactly once.
    `on_progress` is called with the offset that was reached, and the log's end. Raises NoLogError,
    LedgerError, FolderInUseError, PipelineFolderError, LakeError, and Spark's errors for failures
    in a task.
    """
    with _locked(out):
        pipeline = _Pipeline(spark, location, out, rules or builtin_rules(), records_per_trigger)
        pipeline.on_findings, pipeline.on_progress = on_findings, on_progress
        while True:
            carried = pipeline.catch_up()
            if not follow:
                return carried
            Event().wait(follow_s)


@contextmanager
def _locked(out: Path | str) -> Iterator[None]:
    """Keep other processes of this machine out of a folder."""
    if is_url(str(out)):
        yield
        return
    disk = RealDisk(Path(out).absolute())
    disk.lock()
    try:
        yield
    finally:
        disk.close()


class _Pipeline:
    """One run."""

    def __init__(
        self,
        spark: SparkSession,
        location: str,
        out: Path | str,
        rules: RuleSet,
        records_per_trigger: int,
    ) -> None:
        self.on_findings: OnFindings | None = None
        self.on_progress: OnProgress | None = None
        self._spark = spark
        self._location = absolute(location)
        self._rules = rules
        self._most = records_per_trigger
        self._replica, self._reader = open_longest([self._location])
        where = str(out) if is_url(str(out)) else str(Path(out).absolute())
        self._place = LakePlace(where, self._reader.cluster_id)
        self._store = CarriedStore(self._place)
        self._tables_fit = False

    def catch_up(self) -> Carried:
        """Run micro-batches up to the log's end."""
        self._replica, self._reader = open_longest([self._location])
        end = sound_end(self._replica, self._reader)
        carried = self._store.newest() or self._beginning()
        if not self._tables_fit:
            self._check_tables(carried.batch)
            self._tables_fit = True
        check_continues(self._replica, self._reader, carried.offset, carried.head, end)
        taken = 0
        while (planned := self._plan(carried, end)) is not None:
            carried = self._take(carried, planned)
            taken += 1
            if self.on_progress is not None:
                self.on_progress(carried.offset, end)
        if taken:
            for path in KEPT:
                if compact(self._place, path):
                    vacuum(self._place, path)
        return carried

    def _check_tables(self, batch: int) -> None:
        """Raise PipelineFolderError if a table doesn't end with the last micro-batch that ended.

        It may hold the one that follows, if that was planned and then killed. In a table of another
        run, commits would be taken for done, or rows would be missing.
        """
        was_planned = self._store.plan(batch + 1) is not None
        for path in KEPT:
            found = committed_batch(self._place, path)
            last = -1 if found is None else found
            if last == batch or (last == batch + 1 and was_planned):
                continue
            holds = "is not there" if found is None else f"ends with micro-batch {found}"
            raise PipelineFolderError(
                f"{self._place.shown_table(path)} {holds}, and what was carried with {batch}: one "
                "of the two is of another run. Put both back from one copy, or give the pipeline "
                "an empty folder."
            )

    def _beginning(self) -> Carried:
        """Return what is known before the first micro-batch, and write it."""
        for path in KEPT:
            if committed_batch(self._place, path) is not None and self._store.plan(0) is None:
                raise PipelineFolderError(
                    f"{self._place.shown} holds tables, but what the pipeline carried is missing, "
                    "so it can't know what it has processed. Give it an empty folder."
                )
        replica, reader = self._replica, self._reader
        parts = max(4, _PARTS_A_CORE * self._spark.sparkContext.defaultParallelism)
        checkpoint = None
        if reader.log_start:
            checkpoint = first_checkpoint(replica, reader, sound_end(replica, reader))
        begun = beginning(checkpoint, parts)
        for part in begun.parts:
            self._store.write_part(0, part)
        head = (reader.hash_at(begun.offset) or b"").hex()
        watcher = Watcher(self._rules)
        watcher.begin(begun.rights)
        carried = Carried(
            -1,
            begun.offset,
            head,
            begun.horizon_ms,
            parts,
            None,
            begun.cluster,
            begun.events,
            watcher.carried(),
        )
        self._store.hand_over(carried)
        return carried

    def _plan(self, carried: Carried, end: int) -> PlannedRange | None:
        """Return what the next micro-batch reads; None if there is nothing new."""
        number = carried.batch + 1
        known = self._store.plan(number)
        if known is not None and known.end > end:
            raise NoLogError(
                f"{self._replica.location}: micro-batch {number} began, so the log up to offset "
                f"{known.end} was to be read, and it ends at {end}. Restore that log, or run again "
                "when it has caught up."
            )
        if known is not None:
            return known
        start = carried.offset
        if start >= end:
            return None
        if end - start > self._most:
            batch_end = self._reader.catalogue.head_at(start)[1].end_offset
            end = max(self._boundary(start + self._most), batch_end)
        planned = PlannedRange(start, end)
        self._store.write_plan(number, planned)
        return planned

    def _boundary(self, offset: int) -> int:
        return self._reader.catalogue.head_at(offset)[1].base_offset

    def _take(self, before: Carried, planned: PlannedRange) -> Carried:
        """Process a micro-batch, for the first time or again."""
        number = before.batch + 1
        replica, reader = self._replica, self._reader
        cores = self._spark.sparkContext.defaultParallelism
        places = [self._location]
        pieces = plan(places, replica, reader, planned.start, planned.end, 2 * cores)
        horizon_ms = _last_ms(reader, planned.end)
        work = MicroBatch(
            number, tuple(pieces), before.parts, self._place, before.open_from, horizon_ms
        )
        with self._described(f"micro-batch {number}"):
            found = micro_batch.run(self._spark, work)
        head = _checked(replica, before, planned, found.reports)
        known = spans_of(found.few, before.open_from)
        tables = ClusterFold(before.cluster).take(found.few, found.counts, known, horizon_ms)
        maker = EventMaker(before.events, leaders=False)
        watcher = Watcher(self._rules, before.watched)
        events = chain.from_iterable(map(maker.step, tables.moments))
        given = watcher.step(in_log_order(chain(events, found.leaders)), horizon_ms)
        findings = [one for one in given if not one.open] + watcher.still_open()
        self._commit(number, before, found, tables, findings)
        if self.on_findings is not None and given:
            self.on_findings(given, planned.end)
        carried = msgspec.structs.replace(
            before,
            batch=number,
            offset=planned.end,
            head=head,
            horizon_ms=horizon_ms,
            open_from=known.open_from,
            events=maker.carried(),
            watched=watcher.carried(),
        )
        self._store.hand_over(carried)
        return carried

    def _commit(
        self,
        number: int,
        before: Carried,
        found: BatchResult,
        cluster: ClusterTables,
        findings: list[Finding],
    ) -> None:
        """Write the driver's rows, and commit each table once."""
        lasting = pc.field("until_offset").is_null()
        newest = pc.field("day") >= _date(before.horizon_ms)
        changed = pc.field("day") >= dt.date.fromisoformat(cluster.changes_since)
        rows = {path: list(tables) for path, tables in found.rows.items()}
        rows[DAYS] += [cluster.past_days, cluster.newest_day]
        rows |= {
            _BROKERS: [cluster.ended, cluster.lasting],
            _PRIVILEGED: [cluster.privileged],
            _CONFIGS: [cluster.configs],
            _CHANGES: [cluster.changes],
            FINDINGS.name: [rows_to_kept(map(_finding_row, findings), FINDINGS)],
        }
        replaced = {
            INTERVALS: lasting,
            _BROKERS: lasting,
            DAYS: newest,
            _CHANGES: changed,
            FINDINGS.name: pc.field("open"),
        }
        files: dict[str, list[DataFile | None]] = {
            path: [*written] for path, written in found.files.items()
        }
        files[BRONZE.name] = [report.file for report in found.reports]
        for path, table in KEPT.items():
            schema = arrow_schema(table)
            mine = files.get(path, [])
            together = pa.concat_tables([schema.empty_table(), *rows.get(path, ())])
            mine.append(write_file(self._place, path, together, f"batch-{number}"))
            replace = replaced.get(path) if number else None
            commit(self._place, path, schema, mine, batch=number, replace=replace)

    @contextmanager
    def _described(self, words: str) -> Iterator[None]:
        """Say in Spark's log and pages what its jobs are for."""
        context = self._spark.sparkContext
        context.setJobDescription(words)
        try:
            yield
        finally:
            with suppress(Exception):
                context.setJobDescription(None)


def _checked(
    replica: Replica, before: Carried, planned: PlannedRange, reports: list[SliceReport]
) -> str:
    """Return the chain hash at the end. Raises NoLogError if the pieces are not the whole chain."""
    offset, head = before.offset, before.head
    for report in reports:
        broken = head and report.previous_hash.hex() != head
        if report.start != offset or report.end - report.start != report.records or broken:
            break
        offset, head = report.end, report.head.hex()
    else:
        if offset == planned.end:
            return head
    raise NoLogError(
        f"{replica.location} changed while it was read: from offset {offset} on it does not "
        "continue what was read before. Compare it with another replica."
    )


def _finding_row(one: Finding) -> tuple[object, ...]:
    """Return a finding as a row of audit.tables.FINDINGS."""
    return (
        one.offset,
        one.id,
        one.rule,
        one.severity.word,
        one.subject,
        one.time_ms,
        one.until_ms,
        day_text(one.time_ms // DAY_MS),
        one.principal,
        one.on_behalf_of,
        one.auth_method,
        one.address,
        one.acted_as,
        one.operation,
        one.reason,
        one.sentence,
        one.count,
        one.offsets,
        one.open,
    )


def _last_ms(reader: LedgerReader, end: int) -> int:
    """Return the timestamp of the batch that ends at an offset."""
    for batch in reader.batches(end - 1, end):
        return batch.header.timestamp_ms
    raise AssertionError(f"no batch ends at {end}")


def _date(time_ms: int) -> dt.date:
    days = min(time_ms // DAY_MS, (dt.date.max - dt.date(1970, 1, 1)).days)
    return dt.date(1970, 1, 1) + dt.timedelta(days)
