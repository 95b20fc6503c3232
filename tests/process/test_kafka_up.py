"""`logberg kafka up` when Kafka fails: real controllers, and a Java that is some lines of shell.

tests/kafka runs Kafka itself.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from logberg.local.ports import free_port_base
from tests.process.leftovers import nothing_is_left

pytestmark = pytest.mark.process

_JAVA = """\
#!/bin/sh
case "$*" in
  -version) echo 'openjdk version "21.0.2"' >&2;;
  *StorageTool*) echo 'first' >&2; echo 'no such disk' >&2; exit 1;;
esac
"""
_MAVEN = """\
#!/bin/sh
for word do case $word in -DoutputDirectory=*) folder=${word#*=};; esac; done
mkdir -p "$folder"; echo one > "$folder/a.jar"
"""


def test_what_fails_in_kafka_stops_the_controllers(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name, script in (("java", _JAVA), ("mvn", _MAVEN)):
        program = tmp_path / "bin" / name
        program.write_text(script)
        program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    environment.pop("JAVA_HOME", None)
    folder = tmp_path / "data"
    command = [sys.executable, "-m", "logberg", "kafka", "up", "--data", str(folder)]
    command += ["--controllers", "1", "--brokers", "1", "--port-base", str(free_port_base())]
    said = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert said.returncode == 1, said
    assert said.stderr.splitlines() == [
        "logberg: kafka-broker-101 can't be formatted: no such disk"
    ]
    assert "stopped cleanly" in said.stdout
    file = json.loads((folder / "cluster.json").read_bytes())
    assert [node["pid"] for node in file["nodes"]] == [None]
    nothing_is_left(folder)
