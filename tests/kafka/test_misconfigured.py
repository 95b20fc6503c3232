"""What a misconfigured broker is told: a sentence in the controllers' log before it loops."""

import pytest

from logberg.kafka.broker_process import KafkaProcess
from logberg.kafka.jars import kafka_jars
from logberg.kafka.java import java_for_kafka
from logberg.kafka.node_files import broker_properties
from metadata.uuids import uuid_text
from tests.conformance.ports import free_port
from tests.kafka.our_controllers import CONTROLLERS, OurControllers, our_controllers


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with our_controllers(tmp_path_factory.mktemp("misconfigured")) as cluster:
        cluster.add_brokers(1, kafka_jars())
        yield cluster


def reasons(cluster: OurControllers) -> str:
    """Return all that the controllers logged of refused brokers."""
    return " ".join(
        str(line)
        for n in CONTROLLERS
        for event in ("kafka_broker_refused", "kafka_broker_unregistered", "kafka_request_refused")
        for line in cluster.log_lines(n, event)
    )


def is_told(cluster: OurControllers, broker: KafkaProcess, *words: str) -> None:
    """Start a broker, and wait until a line of the controllers has these words."""
    broker.start()
    try:
        cluster.until(lambda: all(word in reasons(cluster) for word in words), f"said: {words}")
        assert not broker.is_up
    finally:
        broker.kill()


def test_a_node_id_that_a_controller_has(cluster: OurControllers) -> None:
    broker = cluster.add_broker(kafka_jars(), 2, start=False)
    cluster.brokers.remove(broker)
    broker.format(cluster.local.cluster_id)
    is_told(cluster, broker, "node id 2 belongs to a controller", "give the broker another node.id")


def test_a_node_id_that_another_broker_has(cluster: OurControllers, tmp_path) -> None:
    """The first one keeps it."""
    twin = broker_beside(cluster, tmp_path, 11, {})
    twin.format(cluster.local.cluster_id)
    is_told(cluster, twin, "'broker_id': 11", "DUPLICATE_BROKER_REGISTRATION")
    assert cluster.broker_states() == {11: "online"}


def test_another_cluster_s_id(cluster: OurControllers, tmp_path) -> None:
    broker = broker_beside(cluster, tmp_path, 15, {})
    broker.format(uuid_text(bytes(range(16))))
    is_told(cluster, broker, "cluster id", cluster.local.cluster_id)


def test_another_name_of_the_controllers_listener(cluster: OurControllers, tmp_path) -> None:
    names = {
        "controller.listener.names": "CTRL",
        "listener.security.protocol.map": "CTRL:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    broker = broker_beside(cluster, tmp_path, 16, names)
    broker.format(cluster.local.cluster_id)
    is_told(cluster, broker, "'broker_id': 16", "controller.listener.names doesn't name CONTROLLER")


def test_a_log_at_a_level_that_the_broker_does_not_know(tmp_path) -> None:
    """Such as one that began without [kafka], at the newest level of our controllers."""
    with our_controllers(tmp_path, level=33) as cluster:
        broker = broker_beside(cluster, tmp_path, 11, {})
        broker.format(cluster.local.cluster_id)
        is_told(cluster, broker, "'broker_id': 11", "metadata.version", "level 33", "7 to 30")


def broker_beside(
    cluster: OurControllers, folder, node_id: int, more: dict[str, str]
) -> KafkaProcess:
    """Make a broker that the cluster doesn't count as its own."""
    own = folder / f"beside-{node_id}"
    properties = broker_properties(node_id, free_port(), own, cluster.addresses, more)
    return KafkaProcess(own, properties, kafka_jars(), java_for_kafka())
