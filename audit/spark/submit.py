"""The script for spark-submit: a job of the audit on a cluster, or the pipeline.

    spark-submit … audit/spark/submit.py JOB PLACE… --out FOLDER [--up-to OFFSET]
    spark-submit … audit/spark/submit.py pipeline PLACE --out FOLDER [--follow]

Rule: output and errors are the same as on a laptop; spark-submit has the cluster's settings. JOB is
a table of `audit.tables`, or `bronze`. Driver and workers must see places and FOLDER under the same
names; FOLDER may be `s3://BUCKET/PATH`. Rows go to FOLDER/JOB, which is replaced; a table with days
is written by day, but not to object storage. The pipeline keeps its tables in FOLDER.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from audit.findings.finding import Finding
from audit.lake.place import LakeError
from audit.places.remote import is_url, without_secrets
from audit.places.remote_writing import S3, RemotePlace, below
from audit.places.replicas import NoLogError
from audit.spark.jobs.engine import job_frame, write_to_url
from audit.spark.pipeline.carried_store import PipelineFolderError
from audit.spark.pipeline.pipeline import run_pipeline
from audit.spark.session import SparkUnavailableError, audit_session, failure_sentence
from audit.spark.source.log_source import read_log
from audit.tables import BY_NAME
from ledger.errors import LedgerError
from runtime.disk.interface import FolderInUseError

BRONZE: Final = "bronze"
PIPELINE: Final = "pipeline"
_DAY: Final = "day"
_NO_FILE_SYSTEM: Final = re.compile(
    r"No FileSystem for scheme|UNSUPPORTED_FILE_SYSTEM|ClassNotFoundException: Class org\.apache"
)
_EXPECTED: Final = (
    SparkUnavailableError,
    NoLogError,
    LedgerError,
    LakeError,
    PipelineFolderError,
    FolderInUseError,
    OSError,
)


def submit(
    spark: SparkSession, job: str, places: Sequence[str], out: str, up_to: int | None
) -> int:
    """Write a job's table to `out`/`job`; return the number of rows.

    Raises as `audit.spark.jobs.engine`, and OSError for an `out` that can't be written.
    """
    target = below(out, job)
    with _frame(spark, job, places, up_to) as frame:
        if out.startswith(S3):
            RemotePlace(target).names()  # refuse a place that can't be used before any work
            return write_to_url(frame, target)
        writer = frame.write.mode("overwrite")
        if _DAY in frame.columns:
            writer = writer.partitionBy(_DAY)
        writer.parquet(target)
    return int(spark.read.parquet(target).count())


def keep(spark: SparkSession, place: str, out: str, *, follow: bool) -> str:
    """Run the pipeline; return a line about what it has done. Raises as `run_pipeline`."""

    def told(findings: Sequence[Finding], _position: int) -> None:
        for one in findings:
            if one.open:
                _say(f"{one.severity.word}: {one.sentence} ({one.id})")

    def reached(offset: int, end: int) -> None:
        _say(f"pipeline: offset {offset} of {end}")

    done = run_pipeline(spark, place, out, follow=follow, on_findings=told, on_progress=reached)
    return f"up to offset {done.offset}, in {done.batch + 1} micro-batches"


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


@contextmanager
def _frame(
    spark: SparkSession, job: str, places: Sequence[str], up_to: int | None
) -> Iterator[DataFrame]:
    if job == BRONZE:
        yield read_log(spark, places, up_to=up_to)
        return
    with job_frame(job, places, spark, up_to=up_to) as frame:
        yield frame


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="submit.py", description=__doc__.splitlines()[0])
    parser.add_argument("job", choices=[BRONZE, PIPELINE, *BY_NAME])
    parser.add_argument("places", nargs="+", metavar="place")
    parser.add_argument(
        "--out",
        required=True,
        help="folder, s3://BUCKET/PATH, or a URL that Spark has jars for",
    )
    parser.add_argument("--up-to", type=int, help="offset to stop before; the log's end otherwise")
    parser.add_argument("--follow", action="store_true", help="pipeline: go on as the log grows")
    return parser


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.job == PIPELINE and (len(asked.places) != 1 or asked.up_to is not None):
        parser.error("pipeline needs one place. It reads to the log's end.")
    if asked.follow and asked.job != PIPELINE:
        parser.error("--follow is for the pipeline.")
    return asked


def _without_jars(error: Exception, out: str) -> str | None:
    """Return a sentence if Spark lacks the jars of a file system; None for any other error."""
    if not is_url(out) or _NO_FILE_SYSTEM.search(str(error)) is None:
        return None
    return (
        f"{without_secrets(out)} can't be written: Spark has no jars for it. Give them to "
        "spark-submit (--packages), or write to s3://BUCKET/PATH, which needs none"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. If the job fails, it prints a sentence and exits with 1."""
    asked = _asked(arguments)
    try:
        spark = audit_session(app_name=f"logberg audit {asked.job}")
        if asked.job == PIPELINE:
            done = keep(spark, asked.places[0], asked.out, follow=asked.follow)
        else:
            done = f"{submit(spark, asked.job, asked.places, asked.out, asked.up_to)} rows"
    except _EXPECTED as error:
        sys.exit(str(error))
    except Exception as error:
        sentence = failure_sentence(error) or _without_jars(error, asked.out)
        if sentence is None:
            raise
        sys.exit(sentence)
    sys.stdout.write(f"{asked.job}: {done} in {without_secrets(asked.out)}\n")
    spark.stop()


if __name__ == "__main__":
    main()
