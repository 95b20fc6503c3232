"""What operators do with real brokers on our controllers: directories, moves, elections, leaving.

Kafka's own tools ask; Kafka's brokers carry it out.
"""

import json
import re
from typing import Any

import pytest

from logberg.kafka.jars import DEFAULT_VERSION, kafka_jars
from tests.kafka.jvm.programs import JavaPrograms, KafkaTools
from tests.kafka.our_controllers import OurControllers, our_controllers


class Operator:
    """Three brokers, of which each has two log directories, and Kafka's tools."""

    def __init__(self, cluster: OurControllers, tools: KafkaTools, programs: JavaPrograms) -> None:
        self.cluster = cluster
        self.tools = tools
        self.programs = programs

    def tool(self, name: str, *words: str) -> str:
        return self.tools.run(name, "--bootstrap-server", self.cluster.bootstrap, *words)

    def create(self, topic: str, partitions: int, replicas: int) -> None:
        self.programs.run("Topic", self.cluster.bootstrap, topic, str(partitions), str(replicas))

    def partitions(self, topic: str) -> list[dict[str, Any]]:
        """Return the partitions of a topic as the brokers describe them."""
        printed = self.tool("TopicCommand", "--describe", "--topic", topic)
        found = re.findall(r"Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S+)", printed)
        return [
            {
                "leader": int(leader) if leader != "none" else -1,
                "replicas": [int(n) for n in replicas.split(",")],
                "isr": sorted(int(n) for n in isr.split(",")),
            }
            for leader, replicas, isr in found
        ]


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operations")
    jars = kafka_jars()
    with our_controllers(folder, leader_imbalance_check_ms=3_600_000) as cluster:
        for node_id in (11, 12, 13):
            dirs = f"{folder}/broker-{node_id}/data,{folder}/broker-{node_id}/more"
            cluster.add_broker(jars, node_id, {"log.dirs": dirs})
        cluster.wait_running()
        yield Operator(cluster, KafkaTools(DEFAULT_VERSION, folder), JavaPrograms(jars))


def test_replicas_lie_in_both_directories_and_the_log_says_where(operator: Operator) -> None:
    operator.create("spread", 6, 3)

    def assigned() -> bool:
        found = operator.cluster.ask_leader("GET", "/v1/topics/spread")
        dirs = [d for p in found["topics"][0]["partitions"] for d in p.get("directories", [])]
        return len(set(dirs)) == 6 and not any(set(d) <= set("A-") for d in dirs)

    operator.cluster.until(assigned, "each replica has a directory, two of each broker")


def test_partitions_are_reassigned(operator: Operator, tmp_path) -> None:
    operator.create("moved", 2, 1)
    operator.programs.run("Basics", operator.cluster.bootstrap, "moved", "2", "1")
    wanted = {0: [12, 13], 1: [13, 11]}
    moves = tmp_path / "moves.json"
    moves.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": "moved", "partition": n, "replicas": replicas}
                    for n, replicas in wanted.items()
                ],
            }
        )
    )
    words = ("--reassignment-json-file", str(moves))
    printed = operator.tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--execute", *words
    )
    assert "Successfully started" in printed, printed

    def moved() -> bool:
        said = operator.tool(
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--verify", *words
        )
        return said.count("is completed") == 2

    operator.cluster.until(moved, "both moves are done")
    found = operator.partitions("moved")
    assert [each["replicas"] for each in found] == [[12, 13], [13, 11]]
    assert [each["isr"] for each in found] == [[12, 13], [11, 13]]
    operator.programs.run("Basics", operator.cluster.bootstrap, "moved", "2", "1")


def test_a_preferred_leader_comes_back_by_election(operator: Operator) -> None:
    operator.create("preferred", 3, 3)
    victim = operator.cluster.brokers[0]
    assert victim.stop()
    victim.start()
    victim.wait_running()

    def in_sync() -> bool:
        found = operator.partitions("preferred")
        return len(found) == 3 and all(each["isr"] == [11, 12, 13] for each in found)

    operator.cluster.until(in_sync, "it is in sync again", 90.0)
    others = [each["leader"] != each["replicas"][0] for each in operator.partitions("preferred")]
    assert any(others), "the broker stopped, so others lead"
    printed = operator.tool(
        "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"
    )
    assert "Successfully completed leader election (PREFERRED)" in printed, printed
    back = operator.partitions("preferred")
    assert all(each["leader"] == each["replicas"][0] for each in back), back


def test_a_killed_broker_is_fenced_and_its_partitions_get_other_leaders(operator: Operator) -> None:
    operator.create("orphaned", 3, 3)
    victim = operator.cluster.brokers[-1]
    victim.kill()
    operator.cluster.until(
        lambda: operator.cluster.broker_states()[victim.node_id] != "online", "it is fenced"
    )
    found = operator.partitions("orphaned")
    assert all(each["leader"] in (11, 12) for each in found), found
    victim.start()
    victim.wait_running()
    operator.cluster.until(
        lambda: all(each["isr"] == [11, 12, 13] for each in operator.partitions("orphaned")),
        "its replicas are in sync again",
        90.0,
    )


def test_a_broker_whose_directory_fails_goes_on_with_the_other(operator: Operator) -> None:
    """Kafka reports the directory in a heartbeat; our controllers take its replicas away."""
    operator.create("two-homes", 6, 3)
    broker = operator.cluster.brokers[0]
    folder = broker.folder / "more"
    away = folder.with_name("gone")
    assert broker.stop()
    folder.rename(away)
    folder.write_text("not a folder")
    try:
        broker.start()
        broker.wait_running()

        def told() -> bool:
            found = operator.cluster.ask_leader("GET", "/v1/topics/two-homes")
            isrs = [set(p["isr"]) for p in found["topics"][0]["partitions"]]
            return any(broker.node_id in isr for isr in isrs) and not all(
                broker.node_id in isr for isr in isrs
            )

        operator.cluster.until(told, "only the replicas of the sound directory are in sync", 90.0)
    finally:
        broker.stop()
        folder.unlink()
        away.rename(folder)
        broker.start()
    broker.wait_running()
