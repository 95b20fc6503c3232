"""Starts a Spark session, on a laptop without Java as well as on a cluster.

Rule: by default the session is local, quiet and small: two cores, no web pages, loopback, UTC. The
settings of spark-submit (master, memory) are kept. The environment is changed only while Spark
starts, because Spark reads it only then.

It also says in one line what Spark works on, and why a job failed. Spark wraps an error of a task
in a page of its own. An error of ours is already a sentence for people: the last line of the Python
traceback in that page, which is taken out. Anything else is a defect, and its page is shown whole.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from audit.spark.java import NoJavaError, find_java, java_home
from audit.spark.source.log_source import register

MEMORY_MIN_MIB: Final = 512
"""Spark refuses a heap under 450 MiB."""
BESIDE_HEAP_MIB: Final = 512
"""What Java needs besides its heap, and what the Python workers need."""

_LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
_LOGGING: Final = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
_SHORT: Final = " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOOPBACK: Final = "127.0.0.1"
_SIZE: Final = re.compile(r"([0-9]+)([kmgt]?)b?", re.IGNORECASE)
_MEMINFO: Final = Path("/proc/meminfo")

_ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
}
_LOCAL: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
}

_CONNECT: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
_NO_CONNECT: Final = (
    "The audit doesn't run over Spark Connect, because a Connect session has no Spark context, "
    "which plans the audit's tasks. Unset SPARK_REMOTE, and name the cluster with --master or "
    "use spark-submit."
)


class SparkUnavailableError(Exception):
    """Spark can't start here. The message says why, and what to do."""


def audit_session(
    *,
    master: str = "local[2]",
    driver_memory: str = "2g",
    app_name: str = "logberg audit",
    short: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark, or return the running session. It knows the source `logberg_log`.

    `short`: Java compiles less. That pays for work of less than a minute or two, and for the
    pipeline, whose work is Python's. `settings` are Spark's own, such as
    `spark.sql.shuffle.partitions`. Starting takes about 10 s; a terminal shows that. Raises
    SparkUnavailableError: no Java, too little memory.
    """
    if any(name in os.environ for name in _CONNECT):
        raise SparkUnavailableError(_NO_CONNECT)
    running = SparkSession.getActiveSession()
    if running is None:
        wanted = {"spark.app.name": app_name, **_ALWAYS}
        if _by_spark_submit():
            running = _started({**wanted, **(settings or {})})
        else:
            check_memory(driver_memory)
            wanted |= _by_ourselves(master, driver_memory, _SHORT if short else "") | dict(
                settings or {}
            )
            with _java_and_python(master), _shown("starting Spark, which takes a while"):
                running = _started(wanted)
    register(running)
    return running


def _by_spark_submit() -> bool:
    """Return whether spark-submit has started a JVM already, with its settings."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _by_ourselves(master: str, driver_memory: str, more: str = "") -> dict[str, str]:
    made = {
        "spark.master": master,
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": f"{_LOGGING}{more}",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }
    return made | _LOCAL if master.startswith("local") else made


def _started(wanted: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for name, value in wanted.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        raise SparkUnavailableError(
            f"Spark's Java process ended while it started: {error}. Its output is above. "
            "A common reason is that it got less memory than it asked for."
        ) from error


@contextmanager
def _java_and_python(master: str) -> Iterator[None]:
    """Set the environment so that Spark finds Java, this Python and loopback."""
    try:
        made = {"JAVA_HOME": str(java_home(find_java()))}
    except NoJavaError as error:
        raise SparkUnavailableError(str(error)) from None
    if master.startswith("local"):
        made |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": _LOOPBACK}
    before = {name: os.environ.get(name) for name in made}
    os.environ.update(made)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def check_memory(driver_memory: str, available_mib: int | None = None) -> None:
    """Refuse a heap that is too small for Spark or too large for this machine.

    `available_mib` replaces what the machine reports. Raises SparkUnavailableError.
    """
    wanted = mebibytes(driver_memory)
    if wanted < MEMORY_MIN_MIB:
        raise SparkUnavailableError(
            f"{driver_memory} of memory is too little for Spark. Give it {MEMORY_MIN_MIB}m or "
            "more, or 2g for some millions of records. Or use the embedded engine."
        )
    available = _available_mib() if available_mib is None else available_mib
    if available is not None and available < wanted + BESIDE_HEAP_MIB:
        raise SparkUnavailableError(
            f"Spark should get {driver_memory} of memory and needs {BESIDE_HEAP_MIB} MiB more, but "
            f"this machine has {available} MiB free. Give it less (at least {MEMORY_MIN_MIB}m), "
            "free some, or use the embedded engine."
        )


def mebibytes(size: str) -> int:
    """Read a size as Spark does (`2g`, `512m`). Raises SparkUnavailableError."""
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        raise SparkUnavailableError(f"{size!r} is not a size of memory. Write such as 512m or 2g")
    unit = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}[found[2].lower()]
    return int(found[1]) * unit // 1024**2


def _available_mib() -> int | None:
    """Return the memory that is free without swapping; None if the system doesn't report it."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    kibibytes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(kibibytes[0]) // 1024 if kibibytes else None


def _shown(what: str) -> AbstractContextManager[object]:
    console = Console(stderr=True)
    return console.status(what) if console.is_terminal else nullcontext()


def spark_progress(spark: SparkSession) -> str:
    """Return the running stages and their tasks; empty if none runs, as when a log is followed."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in sorted(tracker.getActiveStageIds())]
    words = [
        f"stage {stage.stageId}, {stage.numCompletedTasks} of {stage.numTasks} tasks"
        for stage in stages
        if stage is not None
    ]
    return f"Spark works: {'; '.join(words)}" if words else ""


SparkError: Final = PySparkException
"""The base of everything that Spark raises, for callers that may not import Spark."""

_OURS: Final = re.compile(
    r"^(?:logberg\.)?(?:audit|ledger|metadata|snapshots)(?:\.[a-z_]+)+\.[A-Za-z]+Error: (.+)$"
    r"|^((?:FileNotFound|Permission|OS|IO|Timeout|Connection[A-Za-z]*)Error: .+)$",
    re.MULTILINE,
)
_NO_MEMORY: Final = re.compile(r"OutOfMemoryError|Java heap space|SparkOutOfMemory|MemoryError")


def failure_sentence(error: BaseException) -> str | None:
    """Return the sentence in an error of Spark's; None if the error is unknown."""
    page = str(error)
    raised = _OURS.findall(page)
    if raised:
        ours, systems = raised[-1]
        return str(ours or systems)
    if _NO_MEMORY.search(page):
        return (
            "Spark ran out of memory. Give it more (driver memory, or that of the cluster's "
            "executors), or ask for a smaller part of the log"
        )
    return None
