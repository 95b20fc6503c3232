"""One way to get a Spark session, on a laptop without Java as on a cluster.

Rule: local, quiet and small unless told otherwise: two cores, no web pages, loopback, UTC. What
spark-submit has decided (master, memory) is left alone. The environment is changed only while
Spark starts; Spark reads it then and never again.
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
from audit.spark.source import register

MEMORY_MIN_MIB: Final = 512
"""Spark refuses a heap under 450 MiB."""
BESIDE_HEAP_MIB: Final = 512
"""What the Python workers need, and Java beside its heap."""

_LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
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


class SparkUnavailableError(Exception):
    """Spark can't start here; the message says why, and what to do."""


def audit_session(
    *,
    master: str = "local[2]",
    driver_memory: str = "2g",
    app_name: str = "logberg audit",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark, or return the session that runs. It knows the source `logberg_log`.

    `settings` are Spark's own (`spark.sql.shuffle.partitions`). It takes about 10 s, which is shown
    on a terminal. Raises SparkUnavailableError: no Java, too little memory.
    """
    running = SparkSession.getActiveSession()
    if running is None:
        wanted = {"spark.app.name": app_name, **_ALWAYS}
        if _by_spark_submit():
            running = _started({**wanted, **(settings or {})})
        else:
            check_memory(driver_memory)
            wanted |= _by_ourselves(master, driver_memory) | dict(settings or {})
            with _java_and_python(master), _shown("starting Spark, which takes a while"):
                running = _started(wanted)
    register(running)
    return running


def _by_spark_submit() -> bool:
    """Tell whether a JVM is there already, with its settings made."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _by_ourselves(master: str, driver_memory: str) -> dict[str, str]:
    made = {
        "spark.master": master,
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
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
            f"Spark's Java process ended while it started: {error}. What it said stands above; "
            "often it got less memory than it asked for."
        ) from error


@contextmanager
def _java_and_python(master: str) -> Iterator[None]:
    """Let Spark find Java, this Python and loopback, as long as the context lasts."""
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
    """Refuse a heap that Spark can't work with, or that this machine hasn't got.

    `available_mib` stands for what the machine says. Raises SparkUnavailableError.
    """
    wanted = mebibytes(driver_memory)
    if wanted < MEMORY_MIN_MIB:
        raise SparkUnavailableError(
            f"{driver_memory} of memory is too little for Spark: give it {MEMORY_MIN_MIB}m or "
            "more, 2g for some millions of records; or use the embedded engine."
        )
    available = _available_mib() if available_mib is None else available_mib
    if available is not None and available < wanted + BESIDE_HEAP_MIB:
        raise SparkUnavailableError(
            f"Spark was to get {driver_memory} of memory and needs {BESIDE_HEAP_MIB} MiB beside "
            f"it; this machine has {available} MiB free. Give it less ({MEMORY_MIN_MIB}m at "
            "least), free some, or use the embedded engine."
        )


def mebibytes(size: str) -> int:
    """Read a size as Spark does (`2g`, `512m`). Raises SparkUnavailableError."""
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        raise SparkUnavailableError(f"{size!r} is no size of memory; say 512m, 2g")
    unit = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}[found[2].lower()]
    return int(found[1]) * unit // 1024**2


def _available_mib() -> int | None:
    """Return what could be taken without swapping; None where the system doesn't say."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    kibibytes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(kibibytes[0]) // 1024 if kibibytes else None


def _shown(what: str) -> AbstractContextManager[object]:
    console = Console(stderr=True)
    return console.status(what) if console.is_terminal else nullcontext()
