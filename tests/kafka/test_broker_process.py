"""Every tried Kafka version is fetched, formatted, started, killed and started again, by our parts.

The controllers are Kafka's own: what fails here is not our controllers' fault.
"""

import pytest

from logberg.kafka.jars import TESTED_VERSIONS, kafka_jars
from tests.kafka.stock_kraft import stock_cluster


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_a_broker_of_each_version_runs_and_comes_back(tmp_path, version) -> None:
    with stock_cluster(tmp_path, kafka_jars(version), brokers=1, controllers=1) as cluster:
        (broker,) = cluster.brokers
        first = broker.child.pid
        broker.kill()
        broker.start()
        broker.wait_running()
        assert broker.child.pid != first
        assert broker.stop()
