"""What comes before Java: the checksums, and what is said where the tools are not here."""

import re

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
