"""`logberg audit run`: runs a job of the audit, or the pipeline.

The embedded engine needs only Python; Spark is for logs that outgrow one machine.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from audit import embedded
from audit.findings.finding import Finding
from audit.places.remote import is_url, without_secrets
from audit.places.replicas import Replica, open_all
from audit.reading.moments import offset_of
from audit.tables import BY_NAME, AuditTable
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say, show, table
from logberg.cli.progress import progress, telling
from logberg.commands.audit.failures import failing, print_notes
from logberg.commands.audit.finding_sinks import SinkOptions, opened_sinks, sink_options
from logberg.commands.audit.local_paths import OutPlace
from logberg.commands.audit.table_files import is_folder, refuse_existing, write_rows
from runtime.disk.interface import FolderInUseError

PIPELINE: Final = "pipeline"
_SPARK: Final = "spark"

_EXTRA: Final = "install logberg[audit]"
_ROWS_SHOWN: Final = 1_000
"""Limit on a terminal. A reader would wait for the layout of more rows and not read them."""

Row = tuple[Any, ...]


@click.command("run")
@click.argument("job", metavar="JOB", type=click.Choice([*BY_NAME, PIPELINE]))
@click.argument("where", nargs=-1, required=True)
@click.option(
    "--engine",
    type=click.Choice(["embedded", _SPARK]),
    default="embedded",
    show_default=True,
    help="What computes the tables: Python in this process, or Spark.",
)
@click.option("--up-to", help="Stop here: an offset, a time (2026-11-20T10:00:00Z), -2h, or end.")
@click.option(
    "--out",
    type=OutPlace(),
    help="FILE.csv, FILE.json (one document a line), or a folder for Parquet files; also s3://.",
)
@click.option(
    "--follow", is_flag=True, help="JOB pipeline only: go on as the log grows, until Ctrl-C."
)
@click.option("--master", default="local[2]", show_default=True, help="Address of Spark's master.")
@click.option("--memory", default="2g", show_default=True, help="Memory of Spark's driver.")
@sink_options
@output_option
def command(
    job: str,
    where: tuple[str, ...],
    engine: str,
    up_to: str | None,
    out: str | None,
    follow: bool,
    master: str,
    memory: str,
    output: str,
    **sinks: Any,
) -> None:
    """Print one of the audit's tables, or keep the tables up to date as the log grows.

    JOB is log, partition_events, partition_intervals, broker_intervals, availability, changes,
    privileged, grants, batches, integrity, divergence or state. Both engines give the same rows.
    The jobs batches, integrity and divergence compare several WHEREs. The JOB pipeline adds what is
    new since its last run to Delta tables; it needs Spark and a folder, --out.
    """
    options = SinkOptions(**sinks)
    if job == PIPELINE:
        if out is None or len(where) != 1 or up_to is not None:
            raise click.UsageError(
                "pipeline needs one WHERE and a folder, --out DIR. It reads to the log's end."
            )
        _pipeline(where[0], out, follow, options, master, memory, output)
        return
    if options.any:
        raise click.UsageError("Sinks are for the pipeline; see also `logberg audit findings`.")
    if follow:
        raise click.UsageError("--follow is for the pipeline; see also `logberg audit follow`.")
    with failing():
        if out is not None:
            refuse_existing(out)
        end = _end(where, up_to)
        if engine == _SPARK:
            _by_spark(job, where, end, out, master, memory, output)
        else:
            _plainly(BY_NAME[job], open_all(where), end, out, output)


def _end(where: Sequence[str], up_to: str | None) -> int | None:
    if up_to is None:
        return None
    readers = [replica.reader() for replica in open_all(where)]
    return offset_of(max(readers, key=lambda reader: reader.log_end), up_to)


def _plainly(
    shown: AuditTable, replicas: Sequence[Replica], end: int | None, out: str | None, output: str
) -> None:
    notes: list[str] = []
    with progress(shown.name) as on_progress:
        rows: Iterable[Row] = embedded.job_rows(
            shown.name, replicas, up_to=end, on_progress=on_progress, notes=notes
        )
        if out is not None:
            write_rows(shown, rows, out)
        else:
            rows = list(rows)
    print_notes(notes)
    if out is None:
        _show(shown, rows, output)


def _by_spark(
    job: str,
    where: Sequence[str],
    end: int | None,
    out: str | None,
    master: str,
    memory: str,
    output: str,
) -> None:
    with _spark(master, memory) as spark:
        from audit.spark.jobs import engine  # noqa: PLC0415 - needs the extra
        from audit.spark.jobs.engine import write_to_url  # noqa: PLC0415

        if out is not None and is_folder(out):
            with engine.job_frame(job, where, spark, up_to=end) as frame:
                if is_url(out):
                    write_to_url(frame, out)
                else:
                    frame.write.mode("errorifexists").parquet(str(Path(out).absolute()))
            return
        rows = engine.run_job(job, where, spark, up_to=end)
    if out is not None:
        write_rows(BY_NAME[job], rows, out)
    else:
        _show(BY_NAME[job], rows, output)


def _pipeline(
    where: str,
    out: str,
    follow: bool,
    options: SinkOptions,
    master: str,
    memory: str,
    output: str,
) -> None:
    with failing(), opened_sinks(options) as sinks, _spark(master, memory, short=True) as spark:
        from audit.lake.place import LakeError  # noqa: PLC0415 - needs the extra
        from audit.spark.pipeline.carried_store import PipelineFolderError  # noqa: PLC0415
        from audit.spark.pipeline.pipeline import run_pipeline  # noqa: PLC0415

        def tell(findings: Sequence[Finding], position: int) -> None:
            sinks.give(findings, position)
            for one in findings:
                if one.open:
                    say(f"{one.severity.word}: {one.sentence} ({one.id})", err=True)

        def reached(offset: int, end: int) -> None:
            say(f"pipeline: offset {offset:,} of {end:,}", err=True)

        try:
            done = run_pipeline(
                spark, where, out, follow=follow, on_findings=tell, on_progress=reached
            )
            sinks.end()
        except (PipelineFolderError, LakeError, FolderInUseError) as error:
            raise Failure(str(error)) from None
    if output == "json":
        print_json({"offset": done.offset, "microBatch": done.batch, "horizonMs": done.horizon_ms})
    else:
        shown = without_secrets(out)
        say(f"{shown}: processed up to offset {done.offset}, in {done.batch + 1} micro-batches")


@contextmanager
def _spark(master: str, memory: str, *, short: bool = False) -> Iterator[Any]:
    """Give a Spark session. The error of a failed task becomes a Failure with its sentence."""
    try:
        from audit.spark.session import (  # noqa: PLC0415 - needs the extra
            SparkError,
            SparkUnavailableError,
            audit_session,
            failure_sentence,
            spark_progress,
        )
    except ImportError as error:
        raise Failure(
            f"Spark is not installed ({error.name}): {_EXTRA}, or use the embedded engine."
        ) from None
    session: Any = None

    def told() -> str:
        return "starting Spark" if session is None else spark_progress(session)

    try:
        with telling(told):
            session = audit_session(master=master, driver_memory=memory, short=short)
            yield session
    except SparkUnavailableError as error:
        raise Failure(str(error)) from None
    except SparkError as error:
        raise Failure(failure_sentence(error) or str(error).strip().splitlines()[0]) from None


def _show(shown: AuditTable, rows: Iterable[Row], output: str) -> None:
    names = [column.name for column in shown.columns]
    rows = list(rows)
    if output == "json":
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    shown_rows = rows[:_ROWS_SHOWN] if sys.stdout.isatty() else rows
    show(table(names, ([_cell(value) for value in row] for row in shown_rows)))
    if len(rows) > len(shown_rows):
        say(
            f"the first {_ROWS_SHOWN:,} of {len(rows):,} rows; --out FILE or --output json "
            "gives all of them",
            err=True,
        )


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "-" if value is None else value
