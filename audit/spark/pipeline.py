"""The pipeline: keeps tables up to date as the log grows.

Rule: there is one stream of micro-batches. Bronze is written as records come, silver as soon as a
record is settled, gold for the days that changed. Records of an open transaction wait in bronze and
are read again when it ends. So the cost of a micro-batch grows with what is new and what it
settles. The log itself is read once; later steps read the columns that they need from bronze. A
micro-batch that runs again writes the same rows to the same paths (`pipeline_store`).
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

from audit.spark import gold, silver, source
from audit.spark.alerts import Alert, AlertRules, Happened, watch
from audit.spark.engine_log import AuditedLog
from audit.spark.pipeline_days import AvailabilityEvents, open_day, write_availability
from audit.spark.pipeline_store import (
    BRONZE,
    CHECKPOINT,
    COLUMNS,
    GOLD_CHANGES,
    PARTITIONS,
    RECORDS,
    SILVER_BROKERS,
    SILVER_CONFIGS,
    SILVER_PARTITIONS,
    SILVER_PRIVILEGED,
    TOPICS,
    Carried,
    PipelineStore,
    kept,
)
from audit.spark.settle import Spans, counted, markers, spans
from audit.spark.tables import DAY_MS, day_of

RECORDS_PER_TRIGGER: Final = 1_000_000

OnAlert = Callable[[Alert], None]


def run_pipeline(
    spark: SparkSession,
    location: str,
    folder: Path,
    *,
    follow: bool = False,
    rules: AlertRules | None = None,
    records_per_trigger: int = RECORDS_PER_TRIGGER,
    on_alert: OnAlert | None = None,
) -> Carried:
    """Take in what is new in a log; with `follow`, continue until the process is stopped.

    Returns what was handed over last. `on_alert` is called at least once for each alert; its line
    in `folder`/alerts is there exactly once. Raises NoLogError, FolderInUseError,
    PipelineFolderError, and Spark's StreamingQueryException.
    """
    store = PipelineStore(spark, folder)
    try:
        taking = _Taking(store, AuditedLog(spark, [location]), rules or AlertRules(), on_alert)
        query = _start(spark, location, taking, records_per_trigger, follow=follow)
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return store.newest()
    finally:
        store.close()


def _start(
    spark: SparkSession,
    location: str,
    taking: "_Taking",
    records_per_trigger: int,
    *,
    follow: bool,
) -> StreamingQuery:
    stream = source.stream_log(
        spark,
        location,
        start=taking.log.counted_from,
        columns=COLUMNS,
        records_per_trigger=records_per_trigger,
    )
    writer = stream.writeStream.foreachBatch(taking.take).option(
        "checkpointLocation", str(taking.store.folder / CHECKPOINT)
    )
    if follow:
        return writer.trigger(processingTime="5 seconds").start()
    return writer.trigger(availableNow=True).start()


class _Taking:
    """What is done with a micro-batch."""

    def __init__(
        self, store: PipelineStore, log: AuditedLog, rules: AlertRules, on_alert: OnAlert | None
    ) -> None:
        self.store = store
        self.log = log
        self._rules = rules
        self._on_alert = on_alert

    def take(self, fresh: DataFrame, batch: int) -> None:
        """Process a micro-batch, for the first time or again."""
        store, before = self.store, self.store.before(batch)
        with ExitStack() as stack:
            store.append(fresh, BRONZE, batch)
            rows = store.read_batch(BRONZE, batch)
            known = spans(markers(rows), before.open_from)
            settled = counted(self._candidates(rows, batch, before, known), known)
            store.append(self._since_beginning(rows, silver.TOPIC, batch), TOPICS, batch)
            created = self._since_beginning(settled, silver.PARTITION, batch)
            store.append(created.dropDuplicates(["topic_id", "partition"]), PARTITIONS, batch)
            names = kept(stack, silver.topic_names(store.read(TOPICS)))
            happened = self._write_silver(stack, settled, names, batch)
            self._write_changes(settled, batch)
            carried = _moved_on(before, batch, rows, known)
            if before.opening_day is None:
                carried = self._open_first_day(carried, rows, names)
            carried = write_availability(store, names, carried)
            carried, alerts = watch(carried, happened, self._rules)
        store.write_alerts(batch, [msgspec.json.encode(alert) for alert in alerts])
        if self._on_alert is not None:
            for alert in alerts:
                self._on_alert(alert)
        store.hand_over(carried)

    def _candidates(self, rows: DataFrame, batch: int, before: Carried, known: Spans) -> DataFrame:
        """Add the records that waited, if their transaction has ended."""
        waited = before.open_from
        if waited is None or known.open_from == waited:
            return rows
        waiting = self.store.read(BRONZE).where(
            (F.col("batch") >= before.open_since)
            & (F.col("batch") < batch)
            & (F.col("offset") >= waited)
        )
        return waiting.select(*rows.columns).unionByName(rows)

    def _since_beginning(self, rows: DataFrame, kind: str, batch: int) -> DataFrame:
        """Return rows of a type; in the first micro-batch, also those of the checkpoint."""
        found = rows.where(F.col("type") == kind)
        if batch > 0 or self.log.facts is None:
            return found
        return found.unionByName(self.log.facts.where(F.col("type") == kind).select(*rows.columns))

    def _write_silver(
        self, stack: ExitStack, settled: DataFrame, names: DataFrame, batch: int
    ) -> Happened:
        store, day = self.store, day_of(F.col("settled_ms"))
        exist = settled.limit(0)
        if not settled.where(F.col("type") == silver.REMOVE_TOPIC).isEmpty():
            exist = store.read(PARTITIONS)
        created = exist.select("topic_id", "partition").distinct()
        events = kept(stack, silver.partition_events(settled, names, created))
        brokers = kept(stack, silver.broker_events(settled).withColumn("day", day))
        privileged = kept(stack, silver.privileged(settled, names))
        configs = settled.where(F.col("type").isin(silver.CONFIG, silver.REMOVE_TOPIC))
        store.append(events, SILVER_PARTITIONS, batch)
        store.append(brokers, SILVER_BROKERS, batch)
        store.append(privileged, SILVER_PRIVILEGED, batch)
        store.append(configs.withColumn("day", day), SILVER_CONFIGS, batch)
        return Happened(events, brokers, privileged)

    def _write_changes(self, settled: DataFrame, batch: int) -> None:
        """Compute the days again in which a record lies that has settled now."""
        self.store.append(settled, RECORDS, batch)
        days = [row.day for row in settled.select("day").distinct().collect()]
        touched = self.store.read(RECORDS).where(F.col("day").isin(days))
        self.store.write_days(gold.changes(touched), GOLD_CHANGES)

    def _open_first_day(self, carried: Carried, rows: DataFrame, names: DataFrame) -> Carried:
        facts = self.log.facts
        if facts is None:
            first_ms = rows.agg(F.min("timestamp_ms")).collect()[0][0]
            return msgspec.structs.replace(carried, opening_day=first_ms // DAY_MS)
        assert self.log.checkpoint is not None
        day = self.log.checkpoint.header.timestamp_ms // DAY_MS
        events = AvailabilityEvents(
            silver.partition_events(facts, names, facts.select("topic_id", "partition").limit(0)),
            silver.broker_events(facts),
            facts,
        )
        open_day(self.store, events, names, day)
        return msgspec.structs.replace(carried, opening_day=day)


def _moved_on(before: Carried, batch: int, rows: DataFrame, known: Spans) -> Carried:
    horizon_ms = rows.agg(F.max("timestamp_ms")).collect()[0][0]
    open_since = before.open_since if known.open_from == before.open_from else batch
    return msgspec.structs.replace(
        before,
        batch=batch,
        horizon_ms=before.horizon_ms if horizon_ms is None else horizon_ms,
        open_from=known.open_from,
        open_since=None if known.open_from is None else open_since,
    )
