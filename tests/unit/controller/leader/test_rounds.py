"""A broker's event that touches many partitions is written in rounds, with others in between."""

import json
from typing import Any

import pytest

from controller.leader import proposer
from controller.managers import deletions, sweep
from controller.managers.broker_states import Beat
from metadata import key_runs
from metadata.codec import decode_records
from metadata.errors import LogbergError
from metadata.messages import WantedState
from metadata.records import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FencingChange,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from runtime.simulated.clock import SimulatedClock
from tests.unit.controller.cluster import SESSION_S, Broker, Cluster, keep_alive
from tests.unit.controller.leader.test_changes import body

PARTITIONS = 60
ROUND = 8
FORCE = {"force": "true"}


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(sweep, "ROUND", ROUND)
    monkeypatch.setattr(key_runs, "_RUN", 4)
    cluster: Any = Cluster()
    cluster.brokers = cluster.online(1, 2, 3)
    cluster.create_topic("t", partitions=PARTITIONS, factor=3)
    cluster.since = cluster.image.offset
    return cluster


def batches(cluster, operation):
    """Return the records of each batch of an operation."""
    return [
        decode_records(batch.records)
        for batch in cluster.leader.ledger.batches(cluster.since)
        if batch.header.provenance.operation == operation
    ]


def changes(cluster, records):
    """Return the partitions of the first topic that records change."""
    topic_id = cluster.leader.image.topics.named("t").topic_id
    changed = [r for r in records if isinstance(r, PartitionChangeRecord)]
    assert len(changed) <= ROUND
    return [r.partition_id for r in changed if r.topic_id == topic_id]


def check_rounds(cluster, operation, flag):
    """Check that rounds are bounded and in order, and that the broker's record is in the last.

    Each partition must occur once.
    """
    rounds = batches(cluster, operation)
    assert len(rounds) >= PARTITIONS // ROUND
    assert all(len(changes(cluster, records)) <= ROUND for records in rounds)
    assert all(changes(cluster, records) == sorted(changes(cluster, records)) for records in rounds)
    assert sorted(p for records in rounds for p in changes(cluster, records)) == list(
        range(PARTITIONS)
    )
    assert [any(isinstance(r, flag) for r in records) for records in rounds] == [
        *[False] * (len(rounds) - 1),
        True,
    ]
    assert not any(isinstance(r, BeginTransactionRecord) for r in cluster.records(cluster.since))
    cluster.assert_equal()
    return rounds


def between(cluster, operation):
    """Return the operations in the log from the first round to the last."""
    all_of_them = [
        b.header.provenance.operation for b in cluster.leader.ledger.batches(cluster.since)
    ]
    first = all_of_them.index(operation)
    last = len(all_of_them) - 1 - all_of_them[::-1].index(operation)
    return all_of_them[first:last]


def test_a_silent_broker_is_fenced_in_rounds_with_other_decisions_in_between(cluster):
    keep_alive(cluster, cluster.brokers[:2], SESSION_S - 0.1)
    cluster.end_session(3)
    node = cluster.processes[1]
    node.run(cluster.leader._leader.fencing._look)
    replies = [cluster.send("POST", "/v1/topics", body(f"small-{n}")) for n in range(4)]
    registered = Broker(cluster, 4).send(WantedState.FENCED)
    cluster.run_until(lambda: cluster.broker(3).fenced and all(replies) and bool(registered))
    check_rounds(cluster, "FenceBroker", BrokerRegistrationChangeRecord)
    assert registered[0].error is None
    assert cluster.image.topics.leads(3) == 0


def test_a_second_broker_that_falls_silent_is_fenced_before_the_rounds_of_the_first_end(
    cluster, monkeypatch
):
    monkeypatch.setattr(SimulatedClock, "SOON_US", 1_000)
    cluster.create_topic("more", partitions=800, factor=3)
    Broker(cluster, 4).bring_online()
    node, parts = cluster.processes[1], cluster.leader._leader
    node.clock.cost_us = 500
    cluster.end_session(3)
    node.run(parts.fencing._look)
    cluster.end_session(4)
    node.run(parts.fencing.reschedule)
    cluster.run_until(lambda: cluster.broker(4).fenced)
    rounds = len(batches(cluster, "FenceBroker"))
    assert rounds < 30, "of a hundred rounds"
    assert not cluster.broker(3).fenced


def test_brokers_that_leave_together_do_not_elect_each_other_for_ever(cluster, monkeypatch):
    """Seed 812577 of the kind `hunt`: unclean elections led around in a circle."""
    monkeypatch.setattr(sweep, "ROUND", 1)
    monkeypatch.setattr(proposer, "ROUNDS_IN_FLIGHT_BYTES_MAX", 1)
    cluster.write(ConfigRecord(2, "t", "unclean.leader.election.enable", "true"))
    for broker_id in (1, 2, 3):
        cluster.end_session(broker_id)
    registered = [Broker(cluster, broker_id).send(WantedState.FENCED) for broker_id in (1, 2, 3)]
    cluster.run_until(lambda: all(registered))
    assert all(cluster.broker(broker_id).fenced for broker_id in (1, 2, 3))
    moved = sum(len(changes(cluster, records)) for records in batches(cluster, "RegisterBroker"))
    assert moved <= 3 * PARTITIONS, "each broker leaves each ISR once"
    cluster.assert_equal()


@pytest.mark.parametrize("what", ["a broker is forgotten", "topics are deleted"])
def test_rounds_do_not_run_far_ahead_of_what_is_committed(cluster, monkeypatch, what):
    """A registration between two rounds waits for the few that are proposed already."""
    names = [f"s-{n}" for n in range(40)]
    for start in range(0, 40, 20):
        topics = [{"name": n, "numPartitions": 1} for n in names[start : start + 20]]
        assert cluster.ask("POST", "/v1/topics", {"topics": topics})[0] == 200
    cluster.run(0.5)
    monkeypatch.setattr(proposer, "ROUNDS_IN_FLIGHT_BYTES_MAX", 1_000)
    monkeypatch.setattr(deletions, "ROUND_TOPICS", 2)
    pending = cluster.leader._leader.proposer.pending
    if what == "topics are deleted":
        answer = cluster.send("DELETE", "/v1/topics", {"names": names})
    else:
        answer = cluster.send("DELETE", "/v1/brokers/3", query=FORCE)
    most = []

    def done():
        most.append(pending.bytes)
        return bool(answer)

    cluster.run_until(done)
    assert answer[0].status == 200
    written = [b for b in cluster.batches() if b.header.base_offset >= cluster.since]
    assert sum(len(b.encoded) for b in written) > 8_000
    assert 1_000 <= max(most) <= 1_000 + max(len(b.encoded) for b in written)


def test_what_people_keep_in_flight_holds_no_round_back(cluster, monkeypatch):
    monkeypatch.setattr(proposer, "ROUNDS_IN_FLIGHT_BYTES_MAX", 1)
    pending = cluster.leader._leader.proposer.pending
    gone = cluster.send("DELETE", "/v1/brokers/3", query=FORCE)
    for number in range(200):
        # There is always another change that is proposed and not committed.
        cluster.send("POST", "/v1/topics", body(f"flood-{number}"))
        assert pending.bytes
        cluster.run(0.0004)
        if gone:
            break
    assert gone


def test_people_and_rounds_take_turns_and_registrations_come_before_both(cluster):
    cluster.hold_the_turn()
    gone = cluster.send("DELETE", "/v1/brokers/3", query=FORCE)
    small = [cluster.send("POST", "/v1/topics", body(f"small-{n}")) for n in range(6)]
    registered = Broker(cluster, 4).send(WantedState.FENCED)
    cluster.run_until(lambda: bool(gone) and all(small) and bool(registered))
    check_rounds(cluster, "UnregisterBroker", UnregisterBrokerRecord)
    operations = [
        b.header.provenance.operation for b in cluster.leader.ledger.batches(cluster.since)
    ]
    assert operations[:2] == ["Test", "RegisterBroker"]
    assert operations[2:14] == ["UnregisterBroker", "CreateTopics"] * 6
    assert json.loads(gone[0].body)["offset"] == cluster.image.offset
    partition = cluster.partition("small-5")
    assert 3 not in partition.isr


def test_what_a_round_has_written_is_remembered_only_with_the_last_one(cluster):
    status, reply = cluster.ask("DELETE", "/v1/brokers/3", query=FORCE)
    assert status == 200
    headers = {"x-logberg-request-id": reply["requestId"]}
    assert cluster.ask("DELETE", "/v1/brokers/3", query=FORCE, headers=headers) == (status, reply)
    rounds = batches(cluster, "UnregisterBroker")
    assert [type(r[-1]).__name__ == "RequestOutcomeRecord" for r in rounds] == [
        *[False] * (len(rounds) - 1),
        True,
    ]


def test_a_dry_run_shows_all_rounds_at_once(cluster):
    status, shown = cluster.ask(
        "DELETE", "/v1/brokers/3", query={"dryRun": "true", "force": "true"}
    )
    assert status == 200
    assert len(shown["records"]) == PARTITIONS + 1
    assert cluster.image.offset == cluster.since


def test_a_stopping_broker_leads_until_the_last_round_which_says_that_it_stops(cluster):
    """Otherwise a new active controller would think that the broker had nothing to give up."""
    cluster.brokers[2].send(WantedState.STOPPING)
    cluster.run_until(lambda: cluster.broker(3).in_controlled_shutdown)
    rounds = check_rounds(cluster, "BeginControlledShutdown", BrokerRegistrationChangeRecord)
    led = [
        any(r.leader >= 0 for r in records if isinstance(r, PartitionChangeRecord))
        for records in rounds
    ]
    assert led == sorted(led)
    assert led[-1]
    assert cluster.broker(3).controlled_shutdown_offset >= cluster.image.offset - ROUND


@pytest.mark.parametrize("event", ["it stops", "it is silent", "it is forgotten"])
def test_a_broker_that_leaves_in_rounds_is_not_brought_back_by_its_leaders(
    cluster, monkeypatch, event
):
    """A replica that still fetches would leave twice, and cost two records."""
    cluster.create_topic("more", partitions=800, factor=3)
    cluster.since = cluster.image.offset
    monkeypatch.setattr(SimulatedClock, "SOON_US", 1_000)
    node, parts = cluster.processes[1], cluster.leader._leader
    node.clock.cost_us = 2_000
    if event == "it stops":
        cluster.brokers[2].send(WantedState.STOPPING)
    elif event == "it is silent":
        cluster.end_session(3)
        node.run(parts.fencing._look)
    else:
        cluster.send("DELETE", "/v1/brokers/3", query=FORCE)

    def gone():
        partitions = cluster.image.topics.partitions
        return [key for key, p in partitions.items() if 3 not in p.isr and p.leader == 1]

    cluster.run_until(lambda: len(gone()) >= ROUND)
    key = gone()[0]
    answer = cluster.alter_isr(key, (*cluster.image.topics.partitions[key].isr, 3))
    assert answer["error"]["code"] == "INELIGIBLE_REPLICA"
    assert "leaving" in answer["error"]["message"]
    node.clock.cost_us = 0
    cluster.run(1.0)
    about = [
        (r.topic_id, r.partition_id)
        for r in cluster.records(cluster.since)
        if isinstance(r, PartitionChangeRecord)
    ]
    assert len(about) == len(set(about)) == PARTITIONS + 800


def all_silent(cluster):
    """Fence every broker. Return one that was the last in many ISRs."""
    cluster.run(SESSION_S + 0.5)
    assert len(cluster.image.topics.leaderless) == PARTITIONS
    cluster.since = cluster.image.offset
    # The last one in each ISR stays; each broker can lead some.
    last = {p.isr for p in cluster.image.topics.partitions.values()}
    (broker_id,) = {isr[0] for isr in last} if len({isr[0] for isr in last}) == 1 else {1}
    return cluster.brokers[broker_id - 1]


def last_in_sync(cluster, broker_id):
    return sum(p.isr == (broker_id,) for p in cluster.image.topics.partitions.values())


def test_a_broker_that_comes_back_is_unfenced_first_and_leaders_follow(cluster):
    back = all_silent(cluster)
    broker_id = back.broker_id
    back.catch_up()
    back.fetch(WantedState.ONLINE)
    cluster.run(0.5)
    rounds = batches(cluster, "UnfenceBroker")
    assert isinstance(rounds[0][0], BrokerRegistrationChangeRecord)
    assert all(len(changes(cluster, records)) <= ROUND for records in rounds)
    assert sum(len(changes(cluster, records)) for records in rounds) == cluster.image.topics.leads(
        broker_id
    )
    assert cluster.image.topics.leads(broker_id) > ROUND


def test_a_new_process_of_a_broker_is_registered_behind_the_rounds(cluster):
    broker = cluster.broker(3)
    cluster.leader._leader.heartbeats.forget(3)
    new = Broker(cluster, 3)
    new.register()
    check_rounds(cluster, "RegisterBroker", RegisterBrokerRecord)
    assert new.epoch > broker.broker_epoch
    assert cluster.broker(3).fenced


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_leader_that_goes_between_two_rounds_leaves_a_sound_state_and_a_heir_that_ends_it(
    cluster, rounds
):
    node = cluster.processes[1]
    node.clock.cost_us = 5_000
    cluster.end_session(3)
    node.run(cluster.leader._leader.fencing._look)
    cluster.run_until(
        lambda: (
            len([p for p in cluster.image.topics.partitions.values() if 3 not in p.isr])
            >= rounds * ROUND
        )
    )
    node.clock.cost_us = 0
    half = not cluster.broker(3).fenced
    cluster.lead(2)
    keep_alive(cluster, cluster.brokers[:2], SESSION_S + 0.5)
    assert half
    assert cluster.broker(3).fenced
    assert all(3 not in p.isr for p in cluster.image.topics.partitions.values())
    cluster.assert_equal()


def test_leaders_that_were_still_to_be_elected_are_elected_by_the_next_leader(cluster):
    """Its predecessor lost leadership between the rounds of an unfencing."""
    topic_id = cluster.image.topics.named("t").topic_id
    cluster.write(*(PartitionChangeRecord(n, topic_id, leader=-1) for n in range(20)))
    cluster.since = cluster.image.offset
    cluster.lead(2)
    cluster.run(0.5)
    assert not len(cluster.image.topics.leaderless)
    assert [len(changes(cluster, records)) for records in batches(cluster, "ElectLeaders")] == [
        8,
        8,
        4,
    ]


def test_elections_without_room_for_the_next_round_are_tried_again(cluster):
    back = all_silent(cluster)
    led = last_in_sync(cluster, back.broker_id)
    assert led > 2 * ROUND
    cluster.shared.nodes[1].room = 1
    back.catch_up()
    keep_alive(cluster, [back], 2.5, step=0.5)
    assert not cluster.broker(back.broker_id).fenced
    assert cluster.image.topics.leads(back.broker_id) <= ROUND
    assert cluster.shared.nodes[1].refused < 6
    cluster.shared.nodes[1].room = None
    keep_alive(cluster, [back], 1.5, step=0.5)
    assert cluster.image.topics.leads(back.broker_id) == led
    assert batches(cluster, "ElectLeaders")
    cluster.assert_equal()


def test_a_new_leader_without_room_elects_later_what_was_left(cluster):
    topic_id = cluster.image.topics.named("t").topic_id
    cluster.write(*(PartitionChangeRecord(n, topic_id, leader=-1) for n in range(20)))
    cluster.shared.nodes[2].room = 1
    cluster.lead(2)
    cluster.run(0.5)
    assert len(cluster.image.topics.leaderless) == 20
    cluster.shared.nodes[2].room = None
    keep_alive(cluster, cluster.brokers, 1.0, step=0.5)
    assert not len(cluster.image.topics.leaderless)


def decided(steps):
    """Return the result of a decision."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


@pytest.fixture
def manager(cluster):
    return cluster.leader._leader.brokers


def test_a_new_process_between_two_rounds_is_not_fenced_for_the_old_one(cluster, manager):
    cluster.end_session(3)
    rounds = sweep.Sweep(ROUND)
    first = decided(manager.fence_silent(cluster.image, 3, rounds))
    assert first.unfinished
    cluster.leader._leader.heartbeats.forget(3)
    Broker(cluster, 3).bring_online()
    assert not decided(manager.fence_silent(cluster.image, 3, rounds)).records


def test_a_broker_fenced_between_two_rounds_is_not_unfenced_by_its_old_heartbeat(cluster, manager):
    back = all_silent(cluster)
    epoch = cluster.broker(back.broker_id).broker_epoch
    beat = Beat(back.broker_id, epoch, cluster.image.offset, WantedState.ONLINE)
    rounds = sweep.Sweep(ROUND)
    first = decided(manager.heartbeat(cluster.image, beat, rounds))
    assert first.unfinished
    cluster.write(*first.records)
    assert not cluster.broker(back.broker_id).fenced
    cluster.write(BrokerRegistrationChangeRecord(back.broker_id, epoch, fenced=FencingChange.FENCE))
    second = decided(manager.heartbeat(cluster.image, beat, rounds))
    assert not any(isinstance(r, BrokerRegistrationChangeRecord) for r in second.records)
    cluster.leader._leader.heartbeats.forget(back.broker_id)
    Broker(cluster, back.broker_id).register()
    decided(manager.heartbeat(cluster.image, beat, rounds))  # Its epoch is no error any more.


@pytest.mark.parametrize("meanwhile", ["it is online", "it is the last in sync"])
def test_what_would_be_lost_is_asked_again_between_the_rounds(cluster, manager, meanwhile):
    def set_fenced(change):
        epoch = cluster.broker(3).broker_epoch
        cluster.write(BrokerRegistrationChangeRecord(3, epoch, fenced=change))

    set_fenced(FencingChange.FENCE)
    rounds = sweep.Sweep(ROUND)

    def next_round():
        return decided(manager.unregister(cluster.image, 3, rounds, force=False))

    first = next_round()
    assert first.unfinished
    cluster.write(*first.records)
    if meanwhile == "it is online":
        set_fenced(FencingChange.UNFENCE)
    else:
        changed = first.records[0]
        cluster.write(
            PartitionChangeRecord(changed.partition_id, changed.topic_id, isr=(3,), leader=-1)
        )
        for _ in range(PARTITIONS // ROUND - 1):
            cluster.write(*next_round().records)
    with pytest.raises(LogbergError, match="is not forgotten"):
        next_round()


def test_all_rounds_at_once_are_put_in_order_in_steps():
    """A dry run has all rounds at once. The partitions that the broker leads come last."""
    looked_at = 0

    class Changed:
        def __init__(self, key):
            self.key = key

        @property
        def topic_id(self):
            nonlocal looked_at
            looked_at += 1
            return self.key[0]

        @property
        def partition_id(self):
            return self.key[1]

    keys = [(bytes([topic]) * 16, number) for topic in range(4) for number in range(2_000)]
    changed: Any = Changed
    steps = sweep.Sweep().changes(lambda: reversed(keys), lambda key: key[1] % 2, changed)
    most = 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found = stop.value
            break
        most, looked_at = max(most, looked_at), 0
    assert [change.key for change in found] == keys
    assert 0 < max(most, looked_at) <= 1_024


def test_a_lone_broker_of_a_small_cluster_writes_one_batch():
    cluster: Any = Cluster()
    cluster.online(1, 2)
    cluster.create_topic("t", partitions=5, factor=2)
    cluster.since = cluster.image.offset
    assert cluster.ask("DELETE", "/v1/brokers/2", query=FORCE)[0] == 200
    (records,) = batches(cluster, "UnregisterBroker")
    assert changes(cluster, records) == [0, 1, 2, 3, 4]
    assert not any(isinstance(r, TopicRecord) for r in records)
