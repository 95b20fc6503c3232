"""A broker that is being fenced is not told that it is online (model/Leases.tla)."""

import pytest

from metadata.messages import SeenState
from tests.unit.controller.cluster import Cluster

pytestmark = pytest.mark.simulation


def overdue():
    """Return a cluster that is deciding to fence broker 1, which leads a partition."""
    cluster = Cluster()
    first, _ = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    first.catch_up()
    cluster.end_session(1)
    cluster.leader._leader.fencing.reschedule()
    return cluster, first


def fenced_when_committed(cluster):
    pending = cluster.leader._leader.proposer.pending
    return pending.image.cluster.brokers[1].fenced


def test_a_broker_whose_fencing_is_decided_is_fenced_before_that_is_committed():
    """Its lease would begin again, and the commit gives its leaderships away."""
    cluster, broker = overdue()
    cluster.run_until(lambda: fenced_when_committed(cluster))
    assert not cluster.broker(1).fenced
    (reply,) = broker.send()
    assert not cluster.broker(1).fenced
    assert reply.state is SeenState.FENCED
    cluster.run_until(lambda: cluster.broker(1).fenced)
    assert cluster.partition("t").leader != 1


def test_a_broker_that_was_fenced_and_is_decided_to_be_back_is_fenced_until_that_is_committed():
    cluster, broker = overdue()
    cluster.run_until(lambda: fenced_when_committed(cluster))
    broker.send()
    cluster.run_until(lambda: not fenced_when_committed(cluster))
    states = set()
    while not states or SeenState.ONLINE not in states:
        (reply,) = broker.send()
        states.add(reply.state)
        fenced = cluster.broker(1).fenced
        assert not (fenced and reply.state is SeenState.ONLINE)
        cluster.run(0.0005)
    assert states == {SeenState.FENCED, SeenState.ONLINE}


def test_a_broker_that_comes_back_before_its_turn_is_online_again():
    """Its fencing waits behind another decision, and then finds that it is alive."""
    cluster, broker = overdue()
    cluster.hold_the_turn(steps=200)
    cluster.run_until(lambda: cluster.leader._leader.heartbeats.is_being_fenced(1))
    (reply,) = broker.send()
    assert reply.state is SeenState.FENCED
    cluster.run_until(lambda: not cluster.leader._leader.heartbeats.is_being_fenced(1))
    assert not cluster.broker(1).fenced
    (reply,) = broker.send()
    assert reply.state is SeenState.ONLINE
