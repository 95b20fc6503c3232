"""A leader that stalled may have been replaced: it renews no broker's lease by mistake."""

import json

import pytest

from metadata.errors import ErrorCode
from tests.unit.controller.cluster import keep_alive
from tests.unit.controller.real_cluster import RealCluster

pytestmark = pytest.mark.simulation


def test_a_leader_that_was_replaced_while_it_stood_still_answers_no_broker():
    cluster = RealCluster()
    (broker,) = cluster.online(1)
    old = cluster.shared.leader
    others = [node for node in cluster.hosts if node != old]
    cluster.hosts[old].pause()
    cluster.network.cut([old], others)
    cluster.run_until(lambda: cluster.shared.leader not in (None, old))
    cluster.run(8.0)
    cluster.hosts[old].resume()
    # What lay in its sockets is read before its timers tell it that it is cut off.
    replies = broker.send(node=old)
    assert replies == []
    cluster.run(2.0)
    assert cluster.broker(1).fenced
    assert replies[0].error.code == ErrorCode.NO_QUORUM.value


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_leader_that_was_replaced_refuses_nothing_by_what_it_remembers(dry_run):
    """Its successor acknowledged the deletion before the request began."""
    cluster = RealCluster()
    cluster.online(1)
    cluster.create_topic("t", factor=1)
    old = cluster.shared.leader
    others = [node for node in cluster.hosts if node != old]
    cluster.hosts[old].pause()
    cluster.network.cut([old], others)
    cluster.run_until(lambda: cluster.shared.leader not in (None, old))
    assert cluster.ask("DELETE", "/v1/topics/t")[0] == 200
    cluster.hosts[old].resume()
    topic = {"name": "t", "numPartitions": 1, "replicationFactor": 1}
    wanted = {"topics": [topic], "dryRun": dry_run}
    replies = cluster.send("POST", "/v1/topics", wanted, node=old)
    assert replies == []
    cluster.run(3.0)
    assert json.loads(replies[0].body)["code"] == ErrorCode.NO_QUORUM.value
    assert cluster.ask("POST", "/v1/topics", wanted)[0] == 200


@pytest.mark.parametrize("healed", [False, True])
def test_a_leader_that_was_replaced_proposes_nothing_and_says_so(healed):
    """What it proposes is never committed, but the caller would only learn that it timed out."""
    cluster = RealCluster()
    cluster.online(1)
    old = cluster.shared.leader
    others = [node for node in cluster.hosts if node != old]
    cluster.hosts[old].pause()
    cluster.network.cut([old], others)
    cluster.run_until(lambda: cluster.shared.leader not in (None, old))
    if healed:
        cluster.network.heal()
    cluster.hosts[old].resume()
    topic = {"name": "t", "numPartitions": 1, "replicationFactor": 1}
    replies = cluster.send("POST", "/v1/topics", {"topics": [topic]}, node=old)
    assert replies == []
    cluster.run(3.0)
    told = ErrorCode(json.loads(replies[0].body)["code"])
    # Both mean that the change was certainly not made.
    assert told in (ErrorCode.NO_QUORUM, ErrorCode.NOT_CONTROLLER)
    assert cluster.ask("POST", "/v1/topics", {"topics": [topic]})[0] == 200


def test_a_leader_that_stood_still_and_still_leads_makes_the_change_once_it_knows():
    cluster = RealCluster(nodes=1)
    cluster.online(1)
    cluster.hosts[1].pause()
    cluster.run(5.0)
    cluster.hosts[1].resume()
    topic = {"name": "t", "numPartitions": 1, "replicationFactor": 1}
    replies = cluster.send("POST", "/v1/topics", {"topics": [topic]}, node=1)
    cluster.run(0.1)
    assert replies[0].status == 200


def test_a_leader_that_stood_still_and_still_leads_answers_as_soon_as_it_knows():
    cluster = RealCluster(nodes=1)
    (broker,) = cluster.online(1)
    cluster.hosts[1].pause()
    cluster.run(5.0)
    cluster.hosts[1].resume()
    replies = broker.send(node=1)
    cluster.run(0.1)
    assert replies[0].error is None
    keep_alive(cluster, [broker], 12.0)
    assert not cluster.broker(1).fenced


def test_after_a_short_stall_the_leader_of_three_goes_on():
    cluster = RealCluster()
    (broker,) = cluster.online(1)
    leader = cluster.shared.leader
    cluster.hosts[leader].pause()
    cluster.run(0.4)
    cluster.hosts[leader].resume()
    replies = broker.send(node=leader)
    cluster.run(0.1)
    assert cluster.shared.leader == leader
    assert replies[0].error is None
    assert replies[0].batches == ()
    keep_alive(cluster, [broker], 12.0)
    assert not cluster.broker(1).fenced
