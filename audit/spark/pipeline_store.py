"""The pipeline's folder: Parquet tables by day and micro-batch, and what is carried over.

Rule: a micro-batch writes to paths that contain its number. If Spark runs it again after a kill, it
overwrites them. The same number always means the same rows, because Spark's checkpoint fixed the
micro-batch's offsets before it ran. What a micro-batch must know of earlier ones is in a small file
that the one before it wrote last.

    bronze/day=…/batch=…/         every record, as it came
    silver/TABLE/day=…/batch=…/   events, as soon as they are settled
    gold/TABLE/day=…/             computed again for the days that a micro-batch touches
    opening/TABLE/day=…/          the state when a day began
    alerts/BATCH.json             one line for each alert
    carried/BATCH.json            what the next micro-batch must know
    checkpoint/                   Spark's own
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, StructType

from audit.spark.bronze import BRONZE_COLUMNS, ddl
from audit.spark.tables import schema_of
from audit.tables import AVAILABILITY, CHANGES, PARTITION_EVENTS, PRIVILEGED
from runtime.disk.real import RealDisk

BRONZE: Final = "bronze"
TOPICS: Final = "silver/topics"
PARTITIONS: Final = "silver/partitions"
RECORDS: Final = "silver/records"
SILVER_PARTITIONS: Final = "silver/partition_events"
SILVER_BROKERS: Final = "silver/broker_events"
SILVER_CONFIGS: Final = "silver/config_events"
SILVER_PRIVILEGED: Final = "silver/privileged"
GOLD_CHANGES: Final = "gold/changes"
GOLD_AVAILABILITY: Final = "gold/availability"
OPENING_PARTITIONS: Final = "opening/partitions"
OPENING_BROKERS: Final = "opening/brokers"
OPENING_CONFIGS: Final = "opening/configs"
CHECKPOINT: Final = "checkpoint"
ALERTS: Final = "alerts"
_CARRIED: Final = "carried"
_KEPT: Final = 3

COLUMNS: Final = (*BRONZE_COLUMNS, "record")
"""The columns of bronze. `fields` is not stored, because `record` contains it."""

_WHO: Final = (
    "principal string, on_behalf_of string, request_id string, operation string, reason string"
)
_BROKERS: Final = (
    f"broker_id int, offset bigint, settled_base bigint, settled_ms bigint, {_WHO}, kind string, "
    "fenced boolean, stopping boolean, incarnation string, day string"
)
_CONFIGS: Final = (
    "offset bigint, settled_base bigint, settled_ms bigint, type string, topic_id string, "
    f"resource_type int, name string, config_key string, config_value string, {_WHO}, day string"
)
_SCHEMAS: Final[dict[str, str | StructType]] = {
    BRONZE: ddl(COLUMNS),
    TOPICS: "offset bigint, type string, topic_id string, topic_name string, day string",
    PARTITIONS: "topic_id string, partition int, day string",
    RECORDS: (
        "offset bigint, timestamp_ms bigint, principal string, operation string, type string, "
        "day string"
    ),
    SILVER_PARTITIONS: schema_of(PARTITION_EVENTS),
    SILVER_BROKERS: _BROKERS,
    SILVER_CONFIGS: _CONFIGS,
    SILVER_PRIVILEGED: schema_of(PRIVILEGED),
    GOLD_CHANGES: schema_of(CHANGES),
    GOLD_AVAILABILITY: schema_of(AVAILABILITY),
    OPENING_PARTITIONS: schema_of(PARTITION_EVENTS),
    OPENING_BROKERS: _BROKERS,
    OPENING_CONFIGS: _CONFIGS,
}
"""Each has a column `day`, and also `batch` if it grows by micro-batches."""


class LeaderlessPartition(msgspec.Struct, frozen=True):
    """A partition without a leader."""

    topic_id: str
    partition: int
    topic_name: str
    offset: int
    """Offset of the record that took its leader away."""
    since_ms: int
    told: bool = False
    """Its alert was given."""


class Carried(msgspec.Struct, frozen=True):
    """What a micro-batch hands to the next one."""

    batch: int = -1
    horizon_ms: int = 0
    """The timestamp of the last batch that was processed."""
    opening_day: int | None = None
    """The day (since 1970) from whose opening gold is computed."""
    open_from: int | None = None
    """The offset of the Begin of a transaction that has not ended."""
    open_since: int | None = None
    """The micro-batch that holds that Begin."""
    fencings: dict[str, tuple[int, ...]] = {}
    """By broker: when it was fenced, in ms, as far back as the rule looks."""
    lost: tuple[LeaderlessPartition, ...] = ()


class PipelineFolderError(Exception):
    """The pipeline can't continue in this folder. The message says why, and what to do."""


class PipelineStore:
    """Reads and writes the folder. Raises FolderInUseError if another process uses it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self.folder = folder.absolute()
        self._disk = RealDisk(self.folder)
        self._disk.lock()
        for name in (ALERTS, _CARRIED):
            self._disk.make_folder(name)
        if self._batches() and not (self.folder / CHECKPOINT / "offsets").is_dir():
            self.close()
            raise PipelineFolderError(
                f"{folder} holds tables, but their checkpoint is missing, so the pipeline can't "
                "know what it has processed. Give it an empty folder."
            )

    def close(self) -> None:
        self._disk.close()

    def newest(self) -> Carried:
        """Return what was handed over last."""
        return self.before(max(self._batches(), default=-1) + 1)

    def before(self, batch: int) -> Carried:
        """Return what the micro-batch before this one handed over. Raises PipelineFolderError."""
        name = _carried_name(batch - 1)
        if batch == 0:
            return Carried()
        if not self._disk.exists(name):
            raise PipelineFolderError(
                f"{self.folder / name} is missing, and micro-batch {batch} needs it. "
                "Give the pipeline an empty folder."
            )
        return msgspec.json.decode(self._disk.read(name), type=Carried)

    def hand_over(self, carried: Carried) -> None:
        """End a micro-batch. This is the last thing that it writes."""
        self._disk.replace(_carried_name(carried.batch), msgspec.json.encode(carried))
        for batch in self._batches():
            if batch <= carried.batch - _KEPT:
                self._disk.unlink(_carried_name(batch))

    def write_alerts(self, batch: int, lines: Sequence[bytes]) -> None:
        """Write a micro-batch's alerts, one JSON document on each line."""
        name = f"{ALERTS}/{batch:010d}.json"
        if lines or self._disk.exists(name):
            self._disk.replace(name, b"".join(line + b"\n" for line in lines))

    def append(self, frame: DataFrame, table: str, batch: int) -> None:
        """Write a micro-batch's rows of a table."""
        self._write(self._shaped(frame, table).withColumn("batch", F.lit(batch)), table)

    def write_days(self, frame: DataFrame, table: str) -> None:
        """Write whole days of a table again."""
        self._write(self._shaped(frame, table), table)

    def read(self, table: str) -> DataFrame:
        """Return a table as far as it is written, with `day`, and with `batch` if it has that."""
        path = self.folder / table
        columns = self._schema(table)
        if table.startswith((BRONZE, "silver/")):
            columns = StructType([*columns.fields]).add("batch", IntegerType())
        if not path.is_dir():
            return self._spark.createDataFrame([], columns)
        return self._spark.read.schema(columns).parquet(str(path))

    def read_batch(self, table: str, batch: int) -> DataFrame:
        """Return the rows that a micro-batch wrote to a table. Other files are not read."""
        columns = StructType([*self._schema(table).fields]).add("batch", IntegerType())
        folder = self.folder / table
        paths = sorted(str(path) for path in folder.glob(f"day=*/batch={batch}"))
        if not paths:
            return self._spark.createDataFrame([], columns).drop("batch")
        reader = self._spark.read.schema(columns).option("basePath", str(folder))
        return reader.parquet(*paths).drop("batch")

    def _schema(self, table: str) -> StructType:
        schema = _SCHEMAS[table]
        return StructType.fromDDL(schema) if isinstance(schema, str) else schema

    def _shaped(self, frame: DataFrame, table: str) -> DataFrame:
        fields = self._schema(table).fields
        return frame.select(*(F.col(field.name).cast(field.dataType) for field in fields))

    def _write(self, frame: DataFrame, table: str) -> None:
        by = [name for name in ("day", "batch") if name in frame.columns]
        (
            frame.coalesce(self._spark.sparkContext.defaultParallelism)
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy(*by)
            .parquet(str(self.folder / table))
        )

    def _batches(self) -> list[int]:
        names = self._disk.list(_CARRIED)
        return sorted(int(name[:-5]) for name in names if name.endswith(".json"))


def _carried_name(batch: int) -> str:
    return f"{_CARRIED}/{batch:010d}.json"


def kept(stack: ExitStack, frame: DataFrame) -> DataFrame:
    """Let Spark keep a frame that is read more than once, until the stack is left."""
    stack.callback(frame.persist().unpersist)
    return frame
