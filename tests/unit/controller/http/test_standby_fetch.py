"""A standby answers heartbeats once the leader has confirmed them (ADR 0048)."""

from typing import Any

import msgspec
import pytest

from controller.config import ControllerConfig
from controller.leader import contact_taker
from controller.replica.contact_sender import CONFIRM_S
from controller.replica.contacts import decode_bulk, encode_message
from metadata.errors import ErrorCode
from metadata.messages import SeenState, WantedState
from metadata.uuids import uuid_text
from runtime.http.requests import Caller
from tests.unit.controller.cluster import SESSION_S, Broker, Cluster

STANDBY, OTHER = 2, 3
SENT_ELSEWHERE = ErrorCode.NOT_CONTROLLER.value


@pytest.fixture
def cluster():
    return Cluster(standbys_take_heartbeats=True)


@pytest.fixture
def broker(cluster):
    (broker,) = cluster.online(1)
    cluster.run(0.5)
    broker.catch_up()
    cluster.run(0.5)
    return broker


def heartbeats(cluster):
    return cluster.leader._leader.heartbeats


def answer(cluster, replies, within_s=CONFIRM_S + 0.1):
    cluster.run_until(lambda: bool(replies), within_s)
    return replies[0]


def refused(reply):
    return reply.error is not None and reply.error.code == SENT_ELSEWHERE


def caught(cluster, part):
    """Catch what the `sender`s or the `taker`s send; returns the bytes of each message."""
    messages = []

    def catch(_node_id, data):
        messages.append(data)
        return True

    for controller in cluster.controllers.values():
        getattr(controller._http, part)._send = catch
    return messages


def test_a_standby_renews_a_session_through_the_leader(cluster, broker):
    for _ in range(4):
        cluster.run(SESSION_S / 2)
        reply = answer(cluster, broker.send(node=STANDBY))
        assert (reply.error, reply.state) == (None, SeenState.ONLINE)
        assert reply.leader_id == cluster.shared.leader
        assert heartbeats(cluster).silence_s(1) < CONFIRM_S
    assert not cluster.broker(1).fenced


def test_a_standby_serves_the_deltas(cluster, broker):
    replies = broker.send(node=STANDBY, max_wait_ms=2_000)
    cluster.run(0.5)
    assert replies == []
    cluster.create_topic("t", factor=1)
    reply = answer(cluster, replies)
    assert reply.batches == broker.fetch().batches
    assert reply.state is SeenState.ONLINE


def test_a_held_request_is_answered_when_its_wait_is_over(cluster, broker):
    replies = broker.send(node=STANDBY, max_wait_ms=1_000)
    cluster.run(0.7)
    assert replies == []
    cluster.run(0.4)
    assert replies[0].state is SeenState.ONLINE


def test_by_default_a_standby_takes_none():
    assert not ControllerConfig(cluster_id="c", node_id=1).standbys_take_heartbeats
    cluster = Cluster()
    (broker,) = cluster.online(1)
    assert refused(broker.send(node=STANDBY)[0])


CASES: dict[str, dict[str, Any]] = {
    "a registration": {"registering": True},
    "another broker epoch": {"broker_epoch": 10**6},
    "another process": {"incarnation_id": uuid_text(b"p" * 16)},
    "another cluster": {"cluster_id": "another"},
    "wants to be fenced": {"wanted": WantedState.FENCED},
    "wants to stop": {"wanted": WantedState.STOPPING},
    "has fetched more than this node has": {"fetched_offset": 10**6},
    "has applied more than this node has": {"applied_offset": 10**6},
    "has seen a newer epoch": {"fetched_epoch": 10**3},
    "a failed directory": {"offline_log_dirs": ("no directory id",)},
    "another's credentials": {"caller": Caller("Broker:2", "tls", "10.0.0.1")},
}


@pytest.mark.parametrize("case", CASES)
def test_everything_else_is_sent_to_the_leader(cluster, broker, case):
    changes = dict(CASES[case])
    if changes.pop("registering", False):
        changes["registration"] = broker.registration
    before = heartbeats(cluster).silence_s(1)
    replies = broker.send(node=STANDBY, **changes)
    cluster.run(CONFIRM_S)
    assert refused(replies[0]) or replies[0].error.code == ErrorCode.INVALID_REQUEST.value
    assert heartbeats(cluster).silence_s(1) >= before


def test_a_broker_that_is_fenced_is_sent_to_the_leader(cluster):
    broker = Broker(cluster, 1).register()
    cluster.run(0.5)
    assert refused(broker.send(node=STANDBY)[0])


def test_no_answer_without_the_confirmation(cluster, broker):
    """Rule 3: without a confirmation there is no answer that renews a lease."""
    forwarded = caught(cluster, "sender")
    replies = broker.send(node=STANDBY)
    cluster.run(CONFIRM_S / 2)
    assert len(forwarded) == 1
    assert replies == []
    cluster.run(CONFIRM_S)
    assert refused(replies[0])


def test_a_contact_is_noted_before_it_is_confirmed(cluster, broker):
    """Rule 2: the leader notes the contacts as if the brokers had come to it."""
    cluster.run(2.0)
    confirmed = caught(cluster, "taker")
    broker.send(node=STANDBY)
    cluster.run_until(lambda: bool(confirmed))
    assert heartbeats(cluster).silence_s(1) == 0


def test_a_bulk_of_another_epoch_is_not_taken(cluster, broker):
    """Rule 2: a leader takes bulks of its own epoch only."""
    forwarded = caught(cluster, "sender")
    broker.send(node=STANDBY)
    cluster.run_until(lambda: bool(forwarded))
    bulk = decode_bulk(forwarded[0])
    confirmed = caught(cluster, "taker")
    cluster.run(1.0)
    for epoch in (bulk.epoch - 1, bulk.epoch + 1):
        other = msgspec.structs.replace(bulk, epoch=epoch)
        cluster.leader.on_contacts(STANDBY, encode_message(other))
    assert confirmed == []
    assert heartbeats(cluster).silence_s(1) >= 1.0
    cluster.leader.on_contacts(STANDBY, encode_message(bulk))
    assert len(confirmed) == 1
    assert heartbeats(cluster).silence_s(1) == 0


def test_after_a_stall_nothing_is_confirmed_before_a_majority_has_spoken(cluster, broker):
    """Rule 2: the leader may have been replaced while it stood still."""
    confirmed = caught(cluster, "taker")
    waiting = []
    cluster.leader._leader.leadership_check._read_index = waiting.append
    cluster.leader._leader.leadership_check.begin()
    replies = broker.send(node=STANDBY)
    cluster.run(CONFIRM_S + 0.1)
    assert confirmed == []
    assert refused(replies[0])
    waiting[0](True)
    assert len(confirmed) == 1


def test_a_stall_is_found_before_a_bulk_is_taken(cluster, broker):
    """The bulk may have come during the stall, so the check must begin first."""
    noticed = []
    cluster.leader._leader.awake.notice = lambda: noticed.append(True)
    cluster.leader.on_contacts(STANDBY, b"no bulk")
    assert noticed == [True]


def test_bulks_that_wait_for_the_leadership_check_are_bounded(cluster, broker):
    forwarded = caught(cluster, "sender")
    broker.send(node=STANDBY)
    cluster.run_until(lambda: bool(forwarded))
    confirmed, waiting = caught(cluster, "taker"), []
    cluster.leader._leader.leadership_check._read_index = waiting.append
    cluster.leader._leader.leadership_check.begin()
    for _ in range(2 * contact_taker.HELD_MAX):
        cluster.leader.on_contacts(STANDBY, forwarded[0])
    waiting[0](True)
    assert len(confirmed) == contact_taker.HELD_MAX


def test_a_broker_whose_fencing_is_decided_is_told_so(cluster, broker):
    """Rule 3: the state is the one that the leader names. The standby's image is late."""
    heartbeats(cluster).set_aside(1)
    reply = answer(cluster, broker.send(node=STANDBY))
    assert (reply.error, reply.state) == (None, SeenState.FENCED)


def test_a_fenced_broker_is_told_so_by_a_late_standby(cluster, broker, monkeypatch):
    """Its image still has the broker online; it has not heard of the commit."""
    standby = cluster.controllers[STANDBY]
    monkeypatch.setattr(cluster.shared.nodes[STANDBY], "deliver", lambda: None)
    answer(cluster, broker.send(WantedState.FENCED))
    cluster.run(0.1)
    assert cluster.broker(1).fenced
    assert not standby.image.cluster.brokers[1].fenced
    reply = answer(cluster, broker.send(node=STANDBY))
    assert (reply.error, reply.state) == (None, SeenState.FENCED)


def test_an_image_that_contradicts_the_leader_sends_the_broker_to_it(cluster, broker):
    """It was confirmed as online, and is fenced while its request is held."""
    replies = broker.send(node=STANDBY, max_wait_ms=2_000)
    cluster.run(0.3)
    answer(cluster, broker.send(WantedState.FENCED))
    assert refused(answer(cluster, replies))


def test_at_a_new_epoch_a_held_request_is_forwarded_again(cluster, broker):
    """Rule 4: another leader counts the sessions now."""
    replies = broker.send(node=STANDBY, max_wait_ms=2_000)
    cluster.run(0.3)
    cluster.kill(1)
    cluster.lead(OTHER)
    reply = answer(cluster, replies, 1.0)
    assert (reply.error, reply.state, reply.leader_id) == (None, SeenState.ONLINE, OTHER)
    silence_s = heartbeats(cluster).silence_s(1)
    assert silence_s is not None
    assert silence_s < CONFIRM_S


def test_the_session_is_the_leaders(cluster, broker, monkeypatch):
    """A standby may be configured with a longer session. The lease must not follow that."""
    assert answer(cluster, broker.send(node=STANDBY)).session_timeout_ms == SESSION_S * 1000
    monkeypatch.setattr(cluster.leader._http.taker, "_session_ms", 1234)
    assert answer(cluster, broker.send(node=STANDBY)).session_timeout_ms == 1234


def test_the_leader_learns_what_a_broker_has_applied_and_runs(cluster, broker):
    cluster.create_topic("t", factor=1)
    cluster.run(0.1)
    end = cluster.image.offset
    answer(cluster, broker.send(node=STANDBY, applied_offset=end, software="9.9"))
    assert heartbeats(cluster).applied_offset(1) == end
    assert heartbeats(cluster).software(1) == "9.9"


def test_a_stopping_broker_goes_on_when_a_standby_hears_of_the_last_offset(cluster, broker):
    (leaving,) = cluster.online(2)
    cluster.assign("t", [2, 1])
    broker.catch_up()
    leaving.catch_up()
    while leaving.fetch(WantedState.STOPPING, max_wait_ms=100).batches:
        pass
    stopping = leaving.send(WantedState.STOPPING, max_wait_ms=2_000)
    cluster.run(0.1)
    assert stopping == []
    assert not cluster.broker(2).fenced
    answer(cluster, broker.send(node=STANDBY, applied_offset=cluster.image.offset))
    cluster.run(0.1)
    assert cluster.broker(2).fenced


def test_a_node_that_begins_to_lead_gives_up_what_it_had_forwarded(cluster, broker):
    caught(cluster, "sender")
    replies = broker.send(node=STANDBY)
    cluster.lead(STANDBY)
    assert replies[0].error is not None
