"""Kafka clients of agents in simulated clusters, while faults strike."""

import pytest

from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape
from tests.simulation.kafka_clients import KafkaClients

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_agents_tell_kafka_clients_is_their_image(seed: int) -> None:
    cluster = Cluster(seed, Shape())
    clients = KafkaClients(cluster)
    cluster.world.after_event(lambda _process: clients.look())
    cluster.start_all()
    cluster.world.run_for(30)
    assert clients.counts["served"] > 100
    assert clients.counts["refused"] > 0
    assert clients.counts["partitions"] > 100
