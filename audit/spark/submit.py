"""The script for spark-submit: a job of the audit on a cluster, its table as Parquet.

    spark-submit … audit/spark/submit.py JOB PLACE… --out FOLDER [--up-to OFFSET]

Rule: output and errors are the same as on a laptop; spark-submit has the cluster's settings. JOB is
a table of `audit.tables`, or `bronze`. Driver and workers must see places and FOLDER under the same
names. Rows go to FOLDER/JOB, which is replaced; a table with days is written by day.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from audit.places.replicas import NoLogError
from audit.spark.engine import job_frame
from audit.spark.reading_failures import failure_sentence
from audit.spark.session import SparkUnavailableError, audit_session
from audit.spark.source import read_log
from audit.tables import BY_NAME
from ledger.errors import LedgerError

BRONZE: Final = "bronze"
_DAY: Final = "day"


def submit(
    spark: SparkSession, job: str, places: Sequence[str], out: str, up_to: int | None
) -> int:
    """Write a job's table to `out`/`job`; return the number of rows.

    Raises as `audit.spark.engine`.
    """
    target = f"{out.rstrip('/')}/{job}"
    with _frame(spark, job, places, up_to) as frame:
        writer = frame.write.mode("overwrite")
        if _DAY in frame.columns:
            writer = writer.partitionBy(_DAY)
        writer.parquet(target)
    return int(spark.read.parquet(target).count())


@contextmanager
def _frame(
    spark: SparkSession, job: str, places: Sequence[str], up_to: int | None
) -> Iterator[DataFrame]:
    if job == BRONZE:
        yield read_log(spark, places, up_to=up_to)
        return
    with job_frame(job, places, spark, up_to=up_to) as frame:
        yield frame


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. If the job fails, it prints a sentence and exits with 1."""
    parser = argparse.ArgumentParser(prog="submit.py", description=__doc__.splitlines()[0])
    parser.add_argument("job", choices=[BRONZE, *BY_NAME])
    parser.add_argument("places", nargs="+", metavar="place")
    parser.add_argument("--out", required=True, help="folder or URL that Spark can write to")
    parser.add_argument("--up-to", type=int, help="offset to stop before; the log's end otherwise")
    asked = parser.parse_args(arguments)
    try:
        spark = audit_session(app_name=f"logberg audit {asked.job}")
        rows = submit(spark, asked.job, asked.places, asked.out, asked.up_to)
    except (SparkUnavailableError, NoLogError, LedgerError) as error:
        sys.exit(str(error))
    except PySparkException as error:
        sentence = failure_sentence(error)
        if sentence is None:
            raise
        sys.exit(sentence)
    sys.stdout.write(f"{asked.job}: {rows} rows in {asked.out}\n")
    spark.stop()


if __name__ == "__main__":
    main()
