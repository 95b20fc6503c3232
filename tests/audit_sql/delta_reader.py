"""Reads Delta tables with delta-spark and prints what it found, for `test_delta_spark`.

Rule: it runs in an environment of its own, with another PySpark than ours, and knows nothing of
Logberg. Arguments: the folder with Delta's jars, then a folder of each table. It prints a line of
JSON for each: types by column, rows in text that another reader can make too, and how many rows a
filter for the first value of a number, a date, a time and a text gives.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, DateType, TimestampType


def plain(field):
    """Return a column as numbers and text."""
    column = F.col(f"`{field.name}`")
    if isinstance(field.dataType, TimestampType):
        return F.unix_micros(column).alias(field.name)
    if isinstance(field.dataType, DateType):
        return column.cast("string").alias(field.name)
    if isinstance(field.dataType, BinaryType):
        return F.hex(column).alias(field.name)
    return column


def main(jars: str, tables: list[str]) -> None:
    """Read and print."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(str(path) for path in sorted(Path(jars).glob("*.jar"))))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    for table in tables:
        frame = spark.read.format("delta").load(table)
        fields = frame.schema.fields
        rows = [list(row) for row in frame.select(*map(plain, fields)).collect()]
        first = frame.first()
        filtered = {}
        for kind in ("bigint", "date", "timestamp", "string"):
            name = next((f.name for f in fields if f.dataType.simpleString() == kind), None)
            if name is not None and first is not None and first[name] is not None:
                filtered[name] = frame.where(F.col(f"`{name}`") == F.lit(first[name])).count()
        said = {
            "types": {field.name: field.dataType.simpleString() for field in fields},
            "rows": rows,
            "filtered": filtered,
        }
        print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
