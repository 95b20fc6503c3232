"""The bytes in flight are bounded. Decisions that wait go on as commits come."""

import pytest

from controller.leader import proposer
from tests.unit.controller.cluster import Cluster


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(proposer, "IN_FLIGHT_BYTES_MAX", 3_000)
    cluster = Cluster()
    cluster.online(1)
    return cluster


def test_decisions_wait_while_too_much_is_in_flight_and_go_on_as_it_commits(cluster):
    leading = cluster.leader
    cluster.shared.cut(*(n for n in cluster.shared.node_ids if n != cluster.shared.leader))
    replies = [
        cluster.send(
            "POST",
            "/v1/topics",
            {"topics": [{"name": f"t{n}", "numPartitions": 1, "replicationFactor": 1}]},
        )
        for n in range(40)
    ]
    cluster.run(0.2)
    assert leading._leader.proposer.waiting > 0
    assert 3_000 <= leading._leader.proposer.pending.bytes < 3_000 + 2_000
    assert not any(replies)

    cluster.shared.heal()
    cluster.run_until(lambda: all(replies))
    assert {reply[0].status for reply in replies} == {200}
    assert leading._leader.proposer.pending.bytes == 0
