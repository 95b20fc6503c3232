"""Brokers: registration, heartbeats, and each transition between a broker's states."""

import msgspec
import pytest

from metadata.errors import ErrorCode
from metadata.image.cluster import broker_record
from metadata.messages import SeenState, SupportedFeature, WantedState
from metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tests.unit.controller.cluster import DECLARED, SESSION_S, Broker, Cluster, keep_alive

FENCED, ONLINE, STOPPING = WantedState.FENCED, WantedState.ONLINE, WantedState.STOPPING


@pytest.fixture
def cluster():
    return Cluster()


def kinds(records):
    return [type(record) for record in records]


# -- registration ----------------------------------------------------------------------------------


def test_a_registration_is_a_record_and_its_offset_is_the_broker_epoch(cluster):
    broker = Broker(cluster, 1, rack="a").register()
    registered = cluster.broker(1)
    assert broker.epoch == registered.broker_epoch
    batch = next(b for b in cluster.batches() if b.header.base_offset == broker.epoch)
    assert batch.header.provenance.principal == "User:ANONYMOUS"
    assert batch.header.acted_as == "Broker:1"
    assert registered.fenced
    assert registered.rack == "a"
    cluster.assert_equal()


def test_a_standby_answers_not_controller_with_the_leader(cluster):
    reply = Broker(cluster, 1).fetch(node=2)
    assert reply.error.known_code() is ErrorCode.NOT_CONTROLLER
    assert (reply.leader_id, reply.leader_url) == (1, "http://controller-1")


def test_a_broker_of_another_cluster_is_refused(cluster):
    reply = Broker(cluster, 1).fetch(cluster_id="another")
    assert reply.error.known_code() is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert cluster.image.cluster.brokers.get(1) is None


@pytest.mark.parametrize("online", [True, False])
def test_a_second_process_is_refused_while_the_first_is_alive_fenced_or_not(cluster, online):
    first = Broker(cluster, 1).register()
    if online:
        first.bring_online()
    second = Broker(cluster, 1)
    for _ in range(5):
        cluster.run(3.0)
        first.fetch(ONLINE if online else FENCED)
        reply = second.fetch(FENCED)
        assert reply.error.known_code() is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.run(SESSION_S + 0.1)
    second.register()
    assert second.epoch > first.epoch
    assert first.fetch().error.known_code() is ErrorCode.STALE_BROKER_EPOCH


def test_a_second_process_is_refused_right_after_a_failover_too(cluster):
    first = Broker(cluster, 1).register()
    cluster.lead(2)
    reply = Broker(cluster, 1).fetch(FENCED)
    assert reply.error.known_code() is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.run(4.1)
    first.fetch(FENCED)
    cluster.run(4.1)
    reply = Broker(cluster, 1).fetch(FENCED)
    assert reply.error.known_code() is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_the_same_process_gets_the_same_epoch_and_amends_its_registration(cluster):
    broker = Broker(cluster, 1).bring_online()
    epoch = broker.epoch
    again = Broker(cluster, 1, rack="moved", incarnation=broker.incarnation)
    again.register()
    assert again.epoch == epoch
    assert cluster.broker(1).rack == "moved"
    assert not cluster.broker(1).fenced
    assert kinds(cluster.records()).count(RegisterBrokerRecord) == 2
    assert cluster.records()[-1] == broker_record(cluster.broker(1))


def test_an_amendment_of_a_stopping_broker_says_that_it_is_stopping(cluster):
    """The record has the values that hold, so readers need no rule for amendments."""
    broker, _ = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    broker.fetch(STOPPING)
    cluster.run(0.1)
    before = cluster.broker(1)
    assert before.in_controlled_shutdown
    Broker(cluster, 1, rack="moved", incarnation=broker.incarnation).fetch(FENCED)
    assert cluster.records()[-1] == broker_record(cluster.broker(1))
    assert cluster.broker(1) == msgspec.structs.replace(before, rack="moved")


def test_a_new_process_gets_a_new_epoch_and_is_fenced(cluster):
    first = Broker(cluster, 1).bring_online()
    cluster.run(SESSION_S + 0.1)
    second = Broker(cluster, 1).register()
    assert second.epoch > first.epoch
    assert cluster.broker(1).fenced


@pytest.mark.parametrize(
    "log_dirs",
    [(bytes(15) + b"\x01",), (b"d" * 16, b"d" * 16), (b"o" * 16, b"n" * 16)],
    ids=["reserved", "twice", "another broker's"],
)
def test_directories_must_be_ones_own(cluster, log_dirs):
    Broker(cluster, 2, log_dirs=(b"o" * 16,)).register()
    reply = Broker(cluster, 1, log_dirs=log_dirs).fetch(FENCED)
    assert reply.error.known_code() is ErrorCode.INVALID_REGISTRATION
    assert cluster.image.cluster.brokers.get(1) is None


def test_a_registration_without_registration_is_invalid(cluster):
    reply = Broker(cluster, 1).fetch(FENCED, registration=None)
    assert reply.error.known_code() is ErrorCode.INVALID_REQUEST


def test_features_do_not_matter_while_none_is_finalised(cluster):
    feature = SupportedFeature(name="x", min_supported_version=3, max_supported_version=4)
    Broker(cluster, 1, features=(*DECLARED, feature)).register()
    assert cluster.broker(1).features[-1].name == "x"


# -- heartbeat -------------------------------------------------------------------------------------


def test_a_heartbeat_of_an_unknown_broker_or_another_epoch_is_stale(cluster):
    unknown = Broker(cluster, 7)
    reply = unknown.fetch(broker_epoch=3, registration=None)
    assert reply.error.known_code() is ErrorCode.STALE_BROKER_EPOCH
    broker = Broker(cluster, 1).register()
    reply = broker.fetch(broker_epoch=broker.epoch + 1)
    assert reply.error.known_code() is ErrorCode.STALE_BROKER_EPOCH


def test_an_epoch_in_the_hands_of_another_process_is_stale(cluster):
    broker = Broker(cluster, 1).register()
    thief = Broker(cluster, 1)
    thief.epoch = broker.epoch
    assert thief.fetch().error.known_code() is ErrorCode.STALE_BROKER_EPOCH


def test_caught_up_means_having_applied_ones_own_registration(cluster):
    broker = Broker(cluster, 1).register()
    just_below = broker.fetch(ONLINE, applied_offset=broker.epoch)
    assert not just_below.caught_up
    cluster.run(1.0)
    assert cluster.broker(1).fenced
    at_it = broker.fetch(ONLINE, applied_offset=broker.epoch + 1)
    assert at_it.caught_up
    cluster.run(1.0)
    assert not cluster.broker(1).fenced


def test_a_newer_epoch_than_ours_means_that_we_are_behind(cluster):
    broker = Broker(cluster, 1).register()
    reply = broker.fetch(fetched_epoch=99)
    assert reply.error.known_code() is ErrorCode.UNKNOWN_LEADER_EPOCH


# -- the state machine, row by row -----------------------------------------------------------------


def test_fenced_that_wants_to_stop_may_go_and_nothing_is_written(cluster):
    broker = Broker(cluster, 1).register()
    end = cluster.image.offset
    reply = broker.fetch(STOPPING)
    assert reply.may_stop
    assert reply.state is SeenState.FENCED
    cluster.run(0.5)
    assert cluster.image.offset == end


def test_fenced_that_wants_to_be_online_is_unfenced_first_then_leaders_are_elected(cluster):
    one, two = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    keep_alive(cluster, [one], SESSION_S + 2)
    cluster.run(SESSION_S + 2)
    assert cluster.partition("t").leader == -1
    assert cluster.partition("t").isr == (1,)
    end = cluster.image.offset
    one.catch_up()
    cluster.run(0.1)
    unfence, *elections = cluster.records(end)
    assert isinstance(unfence, BrokerRegistrationChangeRecord)
    assert unfence.fenced == -1
    assert kinds(elections) == [PartitionChangeRecord]
    assert cluster.partition("t").leader == 1
    assert one.epoch == cluster.broker(1).broker_epoch
    assert two.last is not None


def test_fenced_stays_fenced_while_it_does_not_ask(cluster):
    broker = Broker(cluster, 1).register().catch_up
    cluster.run(0.1)
    assert broker is not None
    assert cluster.broker(1).fenced


@pytest.mark.parametrize("wanted", [FENCED, STOPPING])
def test_unfenced_that_leads_nothing_and_wants_to_leave_is_fenced_isr_first(cluster, wanted):
    one, two = cluster.online(1, 2)
    cluster.assign("t", (2, 1))
    end = cluster.image.offset
    one.fetch(wanted)
    cluster.run(0.1)
    change, fence = cluster.records(end)
    assert isinstance(change, PartitionChangeRecord)
    assert change.isr == (2,)
    assert isinstance(fence, BrokerRegistrationChangeRecord)
    assert (fence.fenced, fence.in_controlled_shutdown) == (1, 0)
    reply = one.fetch(wanted)
    assert reply.state is SeenState.FENCED
    assert reply.may_stop == (wanted is STOPPING)
    assert two.epoch > one.epoch


def test_unfenced_that_leads_and_wants_to_be_fenced_gives_its_leaders_away(cluster):
    one, _ = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    one.fetch(FENCED)
    cluster.run(0.1)
    assert cluster.partition("t").leader == 2
    assert cluster.broker(1).fenced


def test_unfenced_that_leads_and_wants_to_stop_is_flagged_first_then_moved(cluster):
    one, two, three = cluster.online(1, 2, 3)
    cluster.assign("t", (1, 2, 3), (2, 1, 3))
    end = cluster.image.offset
    reply = one.fetch(STOPPING)
    assert not reply.may_stop
    cluster.run(0.1)
    flag, *changes = cluster.records(end)
    assert isinstance(flag, BrokerRegistrationChangeRecord)
    assert (flag.fenced, flag.in_controlled_shutdown) == (0, 1)
    assert [c.isr for c in changes] == [(2, 3), (2, 3)]
    assert cluster.partition("t").leader == 2
    assert cluster.broker(1).controlled_shutdown_offset == cluster.image.offset
    assert one.fetch(STOPPING).state is SeenState.STOPPING
    assert not one.last.may_stop

    # It goes when the slowest active broker has seen the leaders move, and not before.
    two.fetch(apply=False)
    assert two.fetch(apply=True).error is None
    three.fetch(apply=False)
    one.fetch(STOPPING)
    cluster.run(0.1)
    assert not cluster.broker(1).fenced
    three.applied = three.offset
    two.fetch()
    three.fetch()
    one.fetch(STOPPING)
    cluster.run(0.1)
    assert cluster.broker(1).fenced
    assert one.fetch(STOPPING).may_stop


def test_a_held_request_of_a_stopping_broker_is_released_by_the_others_progress(cluster):
    one, two = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    one.fetch(STOPPING)
    cluster.run(0.1)
    one.fetch(STOPPING)
    replies = one.send(STOPPING, max_wait_ms=2000)
    cluster.run(0.2)
    assert not replies
    two.fetch()
    two.fetch()
    cluster.run(0.05)
    assert replies
    assert replies[0].may_stop


def test_a_stuck_active_broker_holds_the_grant_until_it_is_fenced(cluster):
    one, two, three = cluster.online(1, 2, 3)
    cluster.assign("t", (1, 2, 3))
    one.fetch(STOPPING)
    for _ in range(8):
        cluster.run(1.0)
        two.fetch()
        one.fetch(STOPPING)
        three.fetch(apply=False)
        assert not one.last.may_stop
    for _ in range(12):
        cluster.run(1.0)
        two.fetch()
        one.fetch(STOPPING)
    assert cluster.broker(3).fenced
    assert one.last.may_stop


def test_the_last_broker_may_stop_at_once_and_its_partitions_have_no_leader(cluster):
    (one,) = cluster.online(1)
    cluster.assign("t", (1,))
    one.fetch(STOPPING)
    cluster.run(0.1)
    assert cluster.partition("t").leader == -1
    assert cluster.partition("t").isr == (1,)
    one.fetch(STOPPING)
    cluster.run(0.1)
    assert one.fetch(STOPPING).may_stop


def test_wanting_to_be_fenced_is_ignored_in_controlled_shutdown(cluster):
    one, two = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    one.fetch(STOPPING)
    cluster.run(0.1)
    end = cluster.image.offset
    one.fetch(FENCED)
    cluster.run(0.1)
    assert cluster.image.offset == end
    assert two.epoch >= 0


def test_silence_fences_partitions_first_and_says_for_how_long(cluster):
    one, two = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    end = cluster.image.offset
    keep_alive(cluster, [two], SESSION_S - 0.5)
    assert not cluster.broker(1).fenced
    keep_alive(cluster, [two], 1.0)
    assert cluster.broker(1).fenced
    change, fence = cluster.records(end)
    assert (change.isr, change.leader) == ((2,), 2)
    assert fence.fenced == 1
    batch = cluster.batches()[-1]
    assert batch.header.provenance.principal == "Controller:1"
    assert batch.header.provenance.reason.startswith("not heard from for 9.")
    assert cluster.events("broker_fenced")[0]["broker_id"] == 1
    assert one.epoch >= 0


def test_a_broker_that_dies_while_stopping_is_fenced_and_flagged_until_it_comes_back(cluster):
    one, two = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    one.fetch(STOPPING)
    keep_alive(cluster, [], SESSION_S + 1)
    keep_alive(cluster, [two], 0.1)
    assert cluster.broker(1).fenced
    assert cluster.broker(1).in_controlled_shutdown
    again = Broker(cluster, 1).bring_online()
    assert not cluster.broker(1).in_controlled_shutdown
    assert again.last.state is SeenState.ONLINE


def test_a_broker_that_has_begun_to_stop_is_not_unfenced_again(cluster):
    one, two = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    one.fetch(STOPPING)
    keep_alive(cluster, [two], SESSION_S + 1)
    assert cluster.broker(1).fenced
    one.fetch(ONLINE)
    one.fetch(ONLINE)
    cluster.run(0.1)
    assert cluster.broker(1).fenced
    assert one.fetch(STOPPING).may_stop


def test_after_its_grant_the_id_is_free_for_the_next_process_at_once(cluster):
    one, two = cluster.online(1, 2)
    one.fetch(STOPPING)
    cluster.run(0.1)
    assert one.fetch(STOPPING).may_stop
    Broker(cluster, 1).bring_online()
    assert two.epoch >= 0


def test_unregister_leaves_every_isr_and_forgets_the_broker(cluster):
    one, two = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    end = cluster.image.offset
    status, reply = cluster.ask("DELETE", "/v1/brokers/1", query={"force": "true"})
    assert status == 200
    assert reply["brokerId"] == 1
    change, record, _outcome = cluster.records(end)
    assert (change.isr, change.leader) == ((2,), 2)
    assert record == UnregisterBrokerRecord(1, one.epoch)
    assert one.fetch().error.known_code() is ErrorCode.STALE_BROKER_EPOCH
    status, reply = cluster.ask("DELETE", "/v1/brokers/1")
    assert (status, reply["code"]) == (404, "BROKER_ID_NOT_REGISTERED")
    assert two.epoch >= 0
    cluster.assert_equal()


def unregister(cluster, broker_id, **query):
    return cluster.ask("DELETE", f"/v1/brokers/{broker_id}", query=query)


def test_an_online_broker_is_forgotten_by_force_only(cluster):
    cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    end = cluster.image.offset
    for query in ({}, {"dryRun": "true"}, {"force": "false"}, {}):
        status, reply = unregister(cluster, 1, **query)
        assert (status, reply["code"]) == (400, "POLICY_VIOLATION")
        assert "it is online and leads 1 partition" in reply["message"]
        assert "force=true" in reply["message"]
        assert reply["details"]["online"] == "true"
    cluster.run(0.1)
    assert cluster.image.offset == end
    for _ in range(2):
        status, reply = unregister(cluster, 1, force="true", dryRun="true")
        assert status == 200
        assert len(reply["records"]) == 2
    cluster.run(0.1)
    assert cluster.image.offset == end
    assert unregister(cluster, 1, force="true")[0] == 200


def test_the_last_in_sync_replica_is_forgotten_by_force_only(cluster):
    _, two = cluster.online(1, 2)
    cluster.assign("alone", *[(1,)] * 7)
    cluster.assign("shared", (1, 2))
    keep_alive(cluster, [two], SESSION_S + 1)
    status, reply = unregister(cluster, 1)
    assert (status, reply["code"]) == (400, "POLICY_VIOLATION")
    assert "it is online" not in reply["message"]
    assert "7 partitions would lose the last in-sync replica: alone-0, " in reply["message"]
    assert "alone-4 and 2 more" in reply["message"]
    assert reply["details"] == {
        "online": "false",
        "lastInSync": "7",
        "partitions": "alone-0,alone-1,alone-2,alone-3,alone-4",
    }
    assert unregister(cluster, 1, force="true")[0] == 200


def test_a_fenced_broker_whose_partitions_others_hold_is_forgotten_without_force(cluster):
    _, two = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    keep_alive(cluster, [two], SESSION_S + 1)
    assert unregister(cluster, 1)[0] == 200


def test_a_dry_run_of_unregister_shows_the_records_and_writes_nothing(cluster):
    cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    end = cluster.image.offset
    status, reply = cluster.ask(
        "DELETE", "/v1/brokers/1", query={"dryRun": "true", "force": "true"}
    )
    assert status == 200
    assert [r["type"] for r in reply["records"]] == [
        "PARTITION_CHANGE_RECORD",
        "UNREGISTER_BROKER_RECORD",
    ]
    cluster.run(0.1)
    assert cluster.image.offset == end


# -- failover and stalls ---------------------------------------------------------------------------


def test_a_failover_in_the_middle_of_a_shutdown_keeps_waiting(cluster):
    one, two, three = cluster.online(1, 2, 3)
    cluster.assign("t", (1, 2, 3))
    one.fetch(STOPPING)
    cluster.run(0.1)
    flagged = cluster.broker(1).controlled_shutdown_offset
    cluster.lead(2)
    assert cluster.broker(1).controlled_shutdown_offset == flagged
    one.fetch(STOPPING)
    two.fetch()
    two.fetch()
    one.fetch(STOPPING)
    cluster.run(0.1)
    assert not one.fetch(STOPPING).may_stop  # broker 3 has yet to tell the new leader
    three.fetch()
    three.fetch()
    one.fetch(STOPPING)
    cluster.run(0.1)
    assert one.fetch(STOPPING).may_stop


def test_a_new_leader_counts_every_unfenced_broker_as_just_heard_from(cluster):
    cluster.online(1, 2)
    cluster.run(SESSION_S - 1)
    cluster.lead(2)
    cluster.run(SESSION_S - 0.5)
    assert not cluster.broker(1).fenced
    cluster.run(1.0)
    assert cluster.broker(1).fenced
    assert cluster.broker(2).fenced


def test_a_deposed_controller_refreshes_no_contact(cluster):
    (one,) = cluster.online(1)
    cluster.shared.cut(1)
    cluster.lead(2)
    one.fetch(node=1)
    cluster.run(SESSION_S / 2)
    one.send(node=1)
    cluster.run(SESSION_S / 2 + 0.2)
    assert cluster.broker(1).fenced


def test_no_broker_is_fenced_because_the_controller_was_paused(cluster):
    one, two = cluster.online(1, 2)
    cluster.run(SESSION_S - 0.2)
    cluster.processes[1].pause()
    cluster.run(30.0)
    cluster.processes[1].resume()
    cluster.run(1.0)
    assert not cluster.broker(1).fenced
    one.fetch()
    cluster.run(2.0)
    assert not cluster.broker(1).fenced
    cluster.run(2.0)
    assert cluster.broker(2).fenced  # it had its time to reach us, and did not
    assert two.epoch >= 0
    assert cluster.events("loop_stalled")


def test_repeated_pauses_do_not_keep_a_dead_broker_alive(cluster):
    cluster.online(1, 2)
    for _ in range(12):
        cluster.run(1.5)
        cluster.processes[1].pause()
        cluster.run(0.5)
        cluster.processes[1].resume()
    cluster.run(0.1)
    assert cluster.broker(1).fenced


def test_many_silent_brokers_are_fenced_one_decision_each(cluster):
    brokers = cluster.online(*range(1, 8))
    keep_alive(cluster, brokers, 0.01)
    end = cluster.image.offset
    cluster.run(SESSION_S + 1)
    fences = [r for r in cluster.records(end) if isinstance(r, BrokerRegistrationChangeRecord)]
    assert len(fences) == 7
    assert len([b for b in cluster.batches() if b.header.base_offset >= end]) == 7


def test_a_registration_is_never_answered_with_the_epoch_of_another_process(cluster):
    """One entry of the log registers it, unregisters it, and registers another process."""
    first, second = Broker(cluster, 7), Broker(cluster, 7)
    mine = first.send(WantedState.FENCED)
    gone = cluster.send("DELETE", "/v1/brokers/7", query={"force": "true"})
    theirs = second.send(WantedState.FENCED)
    cluster.run(0.5)
    assert gone[0].status == 200
    assert theirs[0].broker_epoch == cluster.broker(7).broker_epoch
    assert mine[0].error.code == "STALE_BROKER_EPOCH"
