"""Which jars Java gets, and what is said when they can't be had. Maven is a shell script here."""

from pathlib import Path

import pytest

from logberg.kafka.jars import BROKER, TOOLS, Jar, JarSet, kafka_jars
from logberg.kafka.kafka_error import KafkaError

BRINGS_TWO = """\
for word do case $word in -DoutputDirectory=*) folder=${word#*=};; esac; done
mkdir -p "$folder"; echo one > "$folder/a.jar"; echo two > "$folder/b.jar"
"""


def fake_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Put an `mvn` on PATH that notes its arguments and then does as `script` says."""
    asked, folder = tmp_path / "asked", tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "mvn"
    program.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n{script}')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return asked


def test_jars_are_fetched_once(tmp_path, monkeypatch) -> None:
    asked = fake_maven(tmp_path, monkeypatch, BRINGS_TWO)
    told: list[str] = []
    for _ in range(2):
        jars = kafka_jars("4.3.1", tmp_path / "cache", say=told.append)
        assert [jar.name for jar in jars] == ["a.jar", "b.jar"]
        assert all(jar.parent == tmp_path / "cache" / "4.3.1-broker" for jar in jars)
    assert len(asked.read_text().splitlines()) == 1
    assert "--strict-checksums" in asked.read_text()
    assert len(told) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "a.jar").write_text("changed"),
        lambda folder: (folder / "a.jar").unlink(),
        lambda folder: (folder / "c.jar").write_text("a stranger"),
        lambda folder: (folder.parent / "4.3.1-broker.sha256").unlink(),
    ],
    ids=["a jar changed", "a jar gone", "a jar more", "no digests"],
)
def test_a_damaged_cache_is_fetched_again(tmp_path, monkeypatch, damage) -> None:
    asked = fake_maven(tmp_path, monkeypatch, BRINGS_TWO)
    kafka_jars("4.3.1", tmp_path / "cache")
    damage(tmp_path / "cache" / "4.3.1-broker")
    jars = kafka_jars("4.3.1", tmp_path / "cache")
    assert [jar.read_text() for jar in jars] == ["one\n", "two\n"]
    assert len(asked.read_text().splitlines()) == 2


MISSING = (
    "echo '[ERROR] Could not find artifact org.apache.kafka:kafka-tools:jar:4.4.0 in central' >&2"
)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (MISSING, "4.4.0 has not published org.apache.kafka:kafka-tools:jar:4.4.0"),
        ("echo '[ERROR] Unknown host repo.example' >&2", "can't reach its registry"),
        ("echo '[ERROR] Cannot access central in offline mode' >&2", "can't reach its registry"),
        ("echo '[ERROR] odd thing' >&2", r"Maven failed .*\[ERROR\] odd thing"),
        ("", "Maven failed .*no output"),
        ("echo '[INFO] nothing to do'; exit 0", "Maven failed .*nothing to do"),
    ],
)
def test_a_failure_of_maven_is_one_sentence(tmp_path, monkeypatch, script, sentence) -> None:
    fake_maven(tmp_path, monkeypatch, f"{script}\nexit 1\n")
    with pytest.raises(KafkaError, match=sentence) as caught:
        kafka_jars("4.4.0", tmp_path / "cache", TOOLS)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["lock"]


def test_without_maven_the_error_says_how_to_get_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KafkaError, match="'mvn' is not here"):
        kafka_jars("4.3.1", tmp_path / "cache")


def test_a_long_fetch_says_how_far_it_is(tmp_path, monkeypatch) -> None:
    said = "Downloaded from central: a.pom (1 kB)\nDownloaded from central: a.jar (9 kB at 1 kB/s)"
    fake_maven(tmp_path, monkeypatch, f"echo '{said}'; sleep 0.5\n{BRINGS_TWO}")
    monkeypatch.setattr("logberg.kafka.jars._TELL_EVERY_S", 0.1)
    told: list[str] = []
    kafka_jars("4.3.1", tmp_path / "cache", say=told.append)
    assert "1 jars after 0 s" in told[1]
    assert len(list((tmp_path / "cache" / "4.3.1-broker").iterdir())) == 2


def test_a_whole_cache_needs_no_maven(tmp_path, monkeypatch) -> None:
    fake_maven(tmp_path, monkeypatch, BRINGS_TWO)
    kafka_jars("4.3.1", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert len(kafka_jars("4.3.1", tmp_path / "cache")) == 2


@pytest.mark.parametrize("version", ["", "4", "4.3", "latest", "4.3.1/../..", "4.3.1 -X"])
def test_what_is_no_version_never_reaches_maven(tmp_path, version) -> None:
    with pytest.raises(KafkaError, match="is no version of Kafka"):
        kafka_jars(version, tmp_path)


def test_a_cache_that_cant_be_written_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KafkaError, match="can't be written"):
        kafka_jars("4.3.1", tmp_path / "file" / "cache")


def test_the_pom_names_classifiers_and_versions(tmp_path, monkeypatch) -> None:
    keeps = f'cp "$(dirname "$4")/pom.xml" {tmp_path}/kept.xml\n'
    fake_maven(tmp_path, monkeypatch, keeps + BRINGS_TWO)
    tests = JarSet("tests", (*BROKER.jars, Jar("org.apache.kafka", "kafka-tools", "", "test")))
    kafka_jars("4.3.1", tmp_path / "cache", tests)
    pom = (tmp_path / "kept.xml").read_text()
    assert "<kafka>4.3.1</kafka>" in pom
    assert "<artifactId>kafka_2.13</artifactId><version>${kafka}</version></dependency>" in pom
    assert "<version>${kafka}</version><classifier>test</classifier>" in pom
    assert "<artifactId>log4j-core</artifactId><version>2." in pom
