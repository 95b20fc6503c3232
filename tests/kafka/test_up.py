"""`logberg kafka up` with Kafka's own brokers, tools and clients: started, asked, resumed, refused.

What is asked through a broker stands in our log with user, broker and client address.
"""

import json
import os
import re
import signal

import pytest

from logberg.kafka.jars import DEFAULT_VERSION, TESTED_VERSIONS
from logberg.local.ports import free_port_base
from tests.kafka.kafka_up import START_S, command, consume_100, kafka_up, produce_100
from tests.process.leftovers import nothing_is_left


def test_started_asked_stopped_and_resumed(tmp_path) -> None:
    folder = tmp_path / "cluster"
    with kafka_up(folder, "--port-base", str(free_port_base())) as up:
        up.ready()
        for line in ("kafka-topics --create", "kafka-console-consumer", "logberg audit who"):
            assert line in up.said
        assert [node["id"] for node in up.part["nodes"]] == [101, 102, 103]
        up.says("101 online, 102 online, 103 online", 20)
        up.tool(
            *("kafka-topics", "--create", "--topic", "kept"),
            *("--partitions", "3", "--replication-factor", "3"),
        )
        produce_100(up, "kept")
        assert consume_100(up, "kept") == list(range(100))
        quorum = up.tool("--controllers", "kafka-metadata-quorum", "describe", "--status")
        assert re.search(r"LeaderId: +[123]\b", quorum)
        assert '"id": 103' in quorum
        assert up.tool("--controllers", "kafka-cluster", "cluster-id").startswith("Cluster ID: ")
        who = command("audit", "who", str(folder), "topic:kept", "-o", "json")
        created = json.loads(who)[-1]
        assert created["operation"] == "CreateTopics"
        assert created["onBehalfOf"] == "User:admin"
        assert created["clientAddress"] == "127.0.0.1"
        assert re.fullmatch("Broker:10[123]", created["principal"])
        up.stops()
    assert {node["pid"] for node in up.part["nodes"]} == {None}

    with kafka_up(folder) as up:
        up.says("resuming cluster", 60)
        up.ready()
        assert consume_100(up, "kept") == list(range(100))
        killed = up.part["nodes"][1]["pid"]
        os.kill(killed, signal.SIGKILL)
        up.says(rf"kafka-broker-102 \(process {killed}\) ended with signal SIGKILL", 20)
        up.says("102 (fenced|offline)", 60)
        assert consume_100(up, "kept") == list(range(100))
        up.stops()
    assert "3 logs agree" in command("log", "verify", str(folder))


OTHERS = [version for version in TESTED_VERSIONS if version != DEFAULT_VERSION]


@pytest.mark.parametrize("version", OTHERS)
def test_another_version_begins_at_a_level_that_it_reads(tmp_path, version) -> None:
    folder = tmp_path / "cluster"
    arguments = ("--kafka-version", version, "--controllers", "1", "--brokers", "1")
    with kafka_up(folder, *arguments, "--port-base", str(free_port_base())) as up:
        up.ready()
        up.tool("kafka-topics", "--create", "--topic", "orders")
        assert up.tool("kafka-topics", "--list").split() == ["orders"]
        up.stops()


def test_ctrl_c_while_brokers_start_leaves_nothing(tmp_path) -> None:
    folder = tmp_path / "cluster"
    with kafka_up(folder, "--port-base", str(free_port_base())) as up:
        up.says("Kafka formats the folder of kafka-broker-102", START_S)
        up.stops()
    assert "ready" not in up.said


def test_a_kill_of_the_command_itself_ends_all_and_the_next_one_goes_on(tmp_path) -> None:
    folder = tmp_path / "cluster"
    arguments = ("--controllers", "1", "--brokers", "1", "--port-base", str(free_port_base()))
    with kafka_up(folder, *arguments) as up:
        up.ready()
        up.tool("kafka-topics", "--create", "--topic", "kept")
        produce_100(up, "kept")
        up.process.kill()
        up.process.wait()
        nothing_is_left(folder)
    with kafka_up(folder) as up:
        up.ready()
        assert consume_100(up, "kept") == list(range(100))
        up.stops()
