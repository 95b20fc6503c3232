"""Brokers of each tried Kafka version on our controllers, alone and mixed, and the levels' raise.

What programs do with the cluster is in jvm/Basics.java: a topic, messages, a group, transactions.
"""

import pytest

from logberg.kafka.jars import DEFAULT_VERSION, TESTED_VERSIONS, kafka_jars
from metadata.features import METADATA_VERSION_NAMES
from tests.kafka.jvm.programs import JavaPrograms, KafkaTools
from tests.kafka.our_controllers import OurControllers, our_controllers

NEWEST_LEVEL = {"4.0": 25, "4.1": 27, "4.2": 29, "4.3": 30, "4.4": 33}
"""The highest metadata.version of each Kafka version."""
DONE = [
    "topic created",
    "produced 100",
    "group read 100",
    "transaction committed, another aborted",
]


def newest_level(version: str) -> int:
    return NEWEST_LEVEL[version.rpartition(".")[0]]


def works(cluster: OurControllers, programs: JavaPrograms, topic: str) -> None:
    """Let a program use the cluster."""
    assert programs.run("Basics", cluster.bootstrap, topic, "3", "2").splitlines() == DONE


def level(cluster: OurControllers) -> int:
    features = cluster.ask_leader("GET", "/v1/features")["features"]
    found = {each["name"]: each["level"] for each in features}
    return int(found["metadata.version"])


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_brokers_of_each_version_run(tmp_path, version) -> None:
    jars = kafka_jars(version)
    with our_controllers(tmp_path, level=newest_level(version)) as cluster:
        cluster.add_brokers(2, jars)
        works(cluster, JavaPrograms(jars), "basics")
        assert cluster.broker_states() == {11: "online", 12: "online"}
        # A stop in order hands everything over, and nobody had to be killed.
        assert all(broker.stop() for broker in cluster.brokers)
        assert set(cluster.broker_states().values()) == {"offline"}


def test_mixed_versions_at_the_oldest_level_which_is_raised_as_the_old_ones_leave(tmp_path) -> None:
    oldest, *newer = TESTED_VERSIONS
    tools = KafkaTools(DEFAULT_VERSION, tmp_path)
    with our_controllers(tmp_path, level=newest_level(oldest)) as cluster:
        for version in TESTED_VERSIONS:
            cluster.add_broker(kafka_jars(version))
        cluster.wait_running()
        for version in (oldest, TESTED_VERSIONS[-1]):
            works(cluster, JavaPrograms(kafka_jars(version)), f"with-{version}")
        for number, version in enumerate(newer):
            wanted = newest_level(version)
            refused = raise_by_tool(tools, cluster, wanted)
            # Whoever is in the way is named.
            assert f"broker {11 + number} doesn't support" in refused, refused
            said = cluster.command("features", "upgrade", f"metadata.version={wanted}")
            assert said.returncode != 0
            assert f"broker {11 + number} doesn't support" in said.stderr
            # The oldest broker's process ends, and a newer one begins in its folder.
            assert cluster.brokers[0].stop()
            cluster.add_broker(kafka_jars(TESTED_VERSIONS[-1]), 11 + number)
            cluster.wait_running()
            if number % 2:
                done = cluster.command("features", "upgrade", f"metadata.version={wanted}")
                assert done.returncode == 0, done.stderr
            else:
                printed = raise_by_tool(tools, cluster, wanted)
                assert "was upgraded to" in printed, printed
            assert level(cluster) == wanted
            works(cluster, JavaPrograms(kafka_jars(version)), f"at-{wanted}")
        assert set(cluster.broker_states().values()) == {"online"}


def raise_by_tool(tools: KafkaTools, cluster: OurControllers, wanted: int) -> str:
    """Raise metadata.version by kafka-features; return what it printed."""
    where = ("--bootstrap-server", cluster.bootstrap)
    name = METADATA_VERSION_NAMES[wanted]
    if wanted <= NEWEST_LEVEL["4.3"]:
        return tools.run("FeatureCommand", *where, "upgrade", "--metadata", name)
    return tools.run("FeatureCommand", *where, "upgrade", "--feature", f"metadata.version={wanted}")
