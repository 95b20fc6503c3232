"""How Kafka's tools are started, and where their address goes."""

from pathlib import Path

import pytest

from audit.spark.java import Java
from logberg.kafka.kafka_error import KafkaError
from logberg.kafka.tools import CLASSES, KafkaTools, names_a_cluster, with_address

ADDRESS = ["--bootstrap-server", "127.0.0.1:1"]


def test_a_tool_gets_its_arguments_as_they_are(tmp_path) -> None:
    tools = KafkaTools(
        [Path("/c/a.jar"), Path("/c/b.jar")], Java(Path("/j/java"), 17, "PATH"), tmp_path
    )
    command = tools.command("kafka-topics", ["--create", "--config", "a=b c"])
    assert command[0] == "/j/java"
    assert command[command.index("-cp") + 1] == "/c/a.jar:/c/b.jar"
    assert command[-4:] == [CLASSES["kafka-topics"], "--create", "--config", "a=b c"]
    (log4j,) = [word.partition("=")[2] for word in command if "log4j2" in word]
    assert '<Root level="WARN">' in Path(log4j).read_text()
    quiet = tools.command("kafka-topics", [], "ERROR")
    (log4j,) = [word.partition("=")[2] for word in quiet if "log4j2" in word]
    assert '<Root level="ERROR">' in Path(log4j).read_text()


def test_a_tool_that_is_not_known_is_refused_with_those_that_are(tmp_path) -> None:
    tools = KafkaTools([], Java(Path("/j/java"), 17, "PATH"), tmp_path)
    with pytest.raises(KafkaError, match=r"'kafka-topic' is none of Kafka's tools.*kafka-topics"):
        tools.command("kafka-topic", [])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("kafka-topics", ["--list"], [*ADDRESS, "--list"]),
        ("kafka-metadata-quorum", ["describe", "--status"], [*ADDRESS, "describe", "--status"]),
        ("kafka-cluster", ["unregister", "--id", "7"], ["unregister", *ADDRESS, "--id", "7"]),
        ("kafka-cluster", ["--help"], [*ADDRESS, "--help"]),
    ],
)
def test_the_address_stands_where_the_tool_takes_it(name, arguments, expected) -> None:
    assert with_address(name, arguments, ADDRESS) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("kafka-topics", ["--list"], False),
        ("kafka-topics", ["--list", "--bootstrap-server", "a:1"], True),
        ("kafka-acls", ["--list", "--bootstrap-controller=a:1"], True),
        ("kafka-dump-log", ["--files", "x.log"], True),
        ("kafka-metadata-shell", [], True),
    ],
)
def test_who_names_an_address_or_needs_none_gets_none(name, arguments, named) -> None:
    assert names_a_cluster(name, arguments) is named
