"""A contact counts once a request has shown which process sent it."""

from typing import Any

import pytest

from metadata.errors import ErrorCode
from metadata.messages import SeenState, WantedState
from metadata.uuids import uuid_text
from runtime.http.requests import Caller
from tests.unit.controller.cluster import CLUSTER_ID, SESSION_S, Broker, Cluster, keep_alive

STOPPING = WantedState.STOPPING
OTHER = uuid_text(b"o" * 16)
FALSE: dict[str, Any] = {
    "cluster": {"cluster_id": "another"},
    "incarnation": {"incarnation_id": OTHER},
    "epoch": {"broker_epoch": 2},
    "amendment of another process": {"incarnation_id": OTHER, "registration": ...},
    "another's certificate": {"caller": Caller("Broker:2", "certificate")},
}


@pytest.fixture
def cluster():
    return Cluster()


def begin_leadership_check(cluster):
    """Let the leader stall while no majority answers."""
    leadership_check = cluster.leader._leader.leadership_check
    leadership_check._read_index = lambda on_ready: None
    leadership_check.begin()


@pytest.mark.parametrize("doubting", [False, True], ids=["sure", "in doubt"])
@pytest.mark.parametrize("false", list(FALSE))
def test_what_is_refused_keeps_no_session_alive(cluster, false, doubting):
    one, two = cluster.online(1, 2)
    if doubting:
        begin_leadership_check(cluster)
    changes = dict(FALSE[false])
    if "registration" in changes:
        changes["registration"] = one.registration
    for _ in range(int(SESSION_S) + 3):
        cluster.run(1.0)
        one.send(**changes)
        two.send()
    assert cluster.broker(1).fenced
    assert not cluster.broker(2).fenced, "who is who it says is heard, in doubt as well"


@pytest.mark.parametrize("named", [{"clusterId": "another"}, {"incarnationId": OTHER}])
def test_a_piece_of_a_snapshot_for_another_process_keeps_no_session_alive(cluster, named):
    one, two = cluster.online(1, 2)
    written = cluster.leader.write_checkpoint() and "0" * 20 + "-" + "0" * 10
    for _ in range(int(SESSION_S) + 3):
        cluster.run(1.0)
        for broker, more in ((one, named), (two, named_rightly(two))):
            query = {"brokerId": str(broker.broker_id), "brokerEpoch": str(broker.epoch), **more}
            cluster.send("GET", f"/v1/snapshots/{written}", query=query)
    assert cluster.broker(1).fenced
    assert not cluster.broker(2).fenced


def named_rightly(broker):
    return {"clusterId": CLUSTER_ID, "incarnationId": uuid_text(broker.incarnation)}


@pytest.mark.parametrize(
    ("query", "field"),
    [({"incarnationId": "x"}, "incarnationId"), ({"brokerEpoch": "-1"}, "brokerEpoch")],
)
def test_a_piece_with_a_bad_claim_is_refused_by_its_field(cluster, query, field):
    status, reply = cluster.ask("GET", "/v1/snapshots/x", query={"brokerId": "1", **query})
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert reply["message"].startswith(f"{field}: ")


def may_stop(cluster, broker):
    broker.fetch(STOPPING)
    cluster.run(0.1)
    return broker.fetch(STOPPING).may_stop


def stopping(cluster):
    """Broker 1 is stopping. It waits for brokers 2 and 3, which have not applied the changes."""
    one, two, three = cluster.online(1, 2, 3)
    cluster.assign("t", (1, 2))
    keep_alive(cluster, [one, two, three], 0.1)
    one.fetch(STOPPING)
    cluster.run(0.1)
    return one, two, three


def test_an_applied_offset_beyond_the_log_s_end_is_refused_and_releases_nobody(cluster):
    one, two, three = stopping(cluster)
    three.catch_up()
    end = cluster.image.offset
    for offset in (end + 1, 2**62):
        reply = two.fetch(applied_offset=offset, apply=False)
        assert reply.error.known_code() is ErrorCode.INVALID_REQUEST
        assert "appliedOffset" in reply.error.message
        assert f"{end}" in reply.error.message
    assert not may_stop(cluster, one)
    assert two.fetch(applied_offset=end).error is None
    assert may_stop(cluster, one)


def test_a_fetched_offset_beyond_the_log_s_end_is_told_where_the_histories_part(cluster):
    one, two, three = stopping(cluster)
    three.catch_up()
    reply = two.fetch(fetched_offset=2**62, applied_offset=2**62, apply=False)
    assert reply.error is None
    assert reply.diverging.end_offset <= cluster.image.offset
    assert not may_stop(cluster, one)


def test_a_false_applied_offset_brings_nobody_online(cluster):
    broker = Broker(cluster, 1).register()
    for changes in ({}, {"fetched_offset": 2**62}):
        reply = broker.fetch(applied_offset=2**62, apply=False, **changes)
        assert not reply.caught_up
        cluster.run(0.1)
        assert reply.state is SeenState.FENCED
        assert cluster.broker(1).fenced


def test_a_false_registration_offset_is_refused(cluster):
    reply = Broker(cluster, 1).fetch(applied_offset=2**62)
    assert reply.error.known_code() is ErrorCode.INVALID_REQUEST
    assert 1 not in cluster.image.cluster.brokers
