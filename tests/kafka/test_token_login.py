"""A broker of Kafka's that has no certificate logs in at the controllers with a token (SASL PLAIN).

docs/kafka/README.md gives these lines to operators. A wrong token is refused, and the broker says
so.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from logberg.kafka.broker_process import KafkaProcess
from logberg.kafka.jars import DEFAULT_VERSION, kafka_jars
from logberg.kafka.java import java_for_kafka
from logberg.kafka.local_kafka import KafkaCluster
from logberg.kafka.node_files import broker_properties
from logberg.local.kafka_part import FIRST_BROKER, KafkaWanted, broker_ports, kafka_address
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class TakesTokens(LocalCluster):
    """A local cluster whose controllers take tokens at the Kafka listener."""

    def _controller_config(self, n, pair, tokens):
        made = super()._controller_config(n, pair, tokens)
        return {**made, "kafka": {**made["kafka"], "sasl_mechanisms": ["PLAIN"]}}


@pytest.fixture
def cluster(tmp_path) -> Iterator[KafkaCluster]:
    wanted = KafkaWanted(DEFAULT_VERSION, 1, DEFAULT_VERSION)
    local = TakesTokens(
        tmp_path / "cluster",
        1,
        0,
        free_port_base(),
        tokens=[f"Broker:{FIRST_BROKER}"],
        kafka=wanted,
    )
    found = KafkaCluster(local, kafka_jars(), java_for_kafka())
    found.prepare()
    found.controllers[1].start()
    try:
        yield found
    finally:
        found.stop()


def with_token(cluster: KafkaCluster, folder: Path, token: str) -> KafkaProcess:
    """Return the broker with a token instead of a certificate."""
    more = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": (
            f'{LOGIN} username="{FIRST_BROKER}" password="{token}";'
        ),
        "listener.name.controller.ssl.truststore.type": "PEM",
        "listener.name.controller.ssl.truststore.location": cluster.file.ca,
    }
    port, _ = broker_ports(cluster.file, FIRST_BROKER)
    properties = broker_properties(
        FIRST_BROKER, port, folder, [kafka_address(cluster.file, 1)], more
    )
    return KafkaProcess(folder, properties, kafka_jars(), java_for_kafka())


def test_a_broker_with_its_token_joins(cluster, tmp_path) -> None:
    token = cluster.local.token_file(f"Broker:{FIRST_BROKER}").read_text().strip()
    broker = with_token(cluster, tmp_path / "broker", token)
    broker.format(cluster.cluster_id)
    broker.start()
    try:
        broker.wait_running()
    finally:
        assert broker.stop()


def test_a_broker_with_a_wrong_token_is_refused(cluster, tmp_path) -> None:
    broker = with_token(cluster, tmp_path / "broker", "qk_wrong")
    broker.format(cluster.cluster_id)
    broker.start()
    try:
        until = time.monotonic() + 60.0
        while b"token is not known" not in broker.output():
            assert time.monotonic() < until, broker.child.last_words()
            assert not broker.child.wait(0.2), broker.obituary()
        assert not broker.is_up
    finally:
        broker.kill()
