"""What comes before Java: the checksums, and what is said where the tools are not here."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.oracles import acls, kafka_jars, partition_changes, replay
from tests.oracles.kafka_jars import HERE, NoOracleError
from tests.oracles.partition_changes import JAVA, JAVA_CLASS


def test_every_jar_has_a_checksum_and_kafkas_version_is_that_of_the_pom():
    checksums = kafka_jars._checksums()
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in checksums.values())
    [version] = re.findall(r"<version>(\d+\.\d+\.\d+)</version>", (HERE / "pom.xml").read_text())
    kafkas = [name for name in checksums if name.startswith("kafka-")]
    assert kafkas
    assert all(name.endswith(f"-{version}.jar") for name in kafkas)


def test_a_folder_with_another_jar_is_not_taken(tmp_path):
    (tmp_path / "a.jar").write_bytes(b"a")
    right = {"a.jar": "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"}
    assert kafka_jars._holds(tmp_path, right)
    assert not kafka_jars._holds(tmp_path, {"a.jar": "0" * 64})
    (tmp_path / "b.jar").write_bytes(b"")
    assert not kafka_jars._holds(tmp_path, right)
    assert not kafka_jars._holds(tmp_path / "none", right)


def test_without_maven_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NoOracleError, match=r"'mvn' is not here.*apt install"):
        kafka_jars.Oracle(JAVA, JAVA_CLASS)


@pytest.mark.parametrize("oracle", [acls, partition_changes, replay])
def test_the_java_program_has_the_class_that_is_started(oracle):
    package, _, name = oracle.JAVA_CLASS.rpartition(".")
    assert oracle.JAVA.name == f"{name}.java"
    assert f"package {package};" in oracle.JAVA.read_text()


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A place for programs that stand for Maven and Java, with a cache and one jar of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    sums = tmp_path / "jars.sha256"
    sums.write_text("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a.jar\n")
    monkeypatch.setattr(kafka_jars, "HERE", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def write(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    fetching = f'for word; do folder=${{word#-DoutputDirectory=}}; done; echo >> "{tmp_path}/calls"'
    write("mvn", f'{fetching}; sleep 0.2; printf a > "$folder/a.jar"')
    write("javac", "exit 0")
    write("java", "echo out of memory >&2; exit 3")
    return write


def test_two_runs_that_begin_together_fetch_the_jars_once(tools, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        [one, other] = [pool.submit(kafka_jars.kafka_jars) for _ in range(2)]
        assert one.result() == other.result()
    assert (tmp_path / "calls").read_text() == "\n"


def test_a_program_that_takes_too_long_is_no_traceback(tools, monkeypatch):
    tools("javac", "exec sleep 60")
    monkeypatch.setattr(kafka_jars, "_COMPILE_S", 0.05)
    with pytest.raises(NoOracleError, match=r"javac did not end within 0\.05 s"):
        kafka_jars.Oracle(JAVA, JAVA_CLASS)


def test_a_java_that_ended_is_no_traceback(tools):
    with kafka_jars.Oracle(JAVA, JAVA_CLASS) as oracle:
        oracle._process.wait()
        with pytest.raises(NoOracleError, match="the oracle has ended: out of memory"):
            oracle.ask(["a question"])
