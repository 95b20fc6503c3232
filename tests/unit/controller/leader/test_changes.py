"""Requests that change something are executed once, whatever is lost on the way."""

import json
from typing import Any

import msgspec
import pytest

from controller.leader import changes
from controller.leader.idempotency import Idempotency, RequestKey
from metadata.codec import decode_records
from metadata.errors import LogbergError
from metadata.image.outcomes import KEPT_MS
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
    RequestOutcomeRecord,
    TopicRecord,
)
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Cluster, keep_alive

WRITE_WAIT_S = 30.0
"""`ControllerConfig.write_wait_s`, as it is by default."""


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.online(1)
    return cluster


def request_id(cluster, number=1, shift_ms=0):
    now_ms = cluster.processes[cluster.shared.leader].clock.wall_ms()
    return uuid_text(uuid7(now_ms + shift_ms, number))


def body(name, partitions=1):
    return {"topics": [{"name": name, "numPartitions": partitions, "replicationFactor": 1}]}


def create(cluster, name, key=None, **more):
    headers = {} if key is None else {"x-logberg-request-id": key}
    return cluster.ask("POST", "/v1/topics", body(name), headers=headers, **more)


# -- idempotency ----------------------------------------------------------------------------------


def test_a_retry_gets_the_same_answer_and_is_not_executed_again(cluster):
    key = request_id(cluster)
    first = create(cluster, "t", key)
    end = cluster.image.offset
    second = create(cluster, "t", key)
    assert first == second
    assert first[0] == 200
    assert first[1]["requestId"] == key
    cluster.run(0.1)
    assert cluster.image.offset == end
    outcome = cluster.records()[-1]
    assert isinstance(outcome, RequestOutcomeRecord)


def test_a_retry_gets_the_same_answer_from_the_next_leader_and_after_a_restart(cluster):
    key = request_id(cluster)
    first = create(cluster, "t", key)
    cluster.lead(2)
    assert create(cluster, "t", key) == first
    cluster.kill(3)
    cluster.start(3)
    cluster.run(0.2)
    cluster.lead(3)
    assert create(cluster, "t", key) == first


def test_a_retry_in_another_format_gets_the_same_answer_in_that_format(cluster):
    key = request_id(cluster)
    first = create(cluster, "t", key)
    replies = cluster.send(
        "POST",
        "/v1/topics",
        msgspec.msgpack.encode(body("t")),
        headers={"x-logberg-request-id": key, "content-type": "application/msgpack"},
    )
    cluster.run_until(lambda: bool(replies))
    assert replies[0].headers["content-type"] == "application/msgpack"
    assert msgspec.msgpack.decode(replies[0].body) == first[1]


def test_a_retry_that_comes_while_the_first_is_under_way_joins_it(cluster):
    key = request_id(cluster)
    headers = {"x-logberg-request-id": key}
    first = cluster.send("POST", "/v1/topics", body("t"), headers=headers)
    second = cluster.send("POST", "/v1/topics", body("t"), headers=headers)
    cluster.run_until(lambda: bool(first and second))
    assert first[0].body == second[0].body
    assert first[0].status == 200
    assert sum(isinstance(r, TopicRecord) for r in cluster.records()) == 1


@pytest.mark.parametrize("under_way", [True, False])
def test_the_same_id_for_another_request_is_refused(cluster, under_way):
    key = request_id(cluster)
    replies = cluster.send("POST", "/v1/topics", body("t"), headers={"x-logberg-request-id": key})
    if not under_way:
        cluster.run_until(lambda: bool(replies))
    refused = cluster.send(
        "POST", "/v1/topics", body("other"), headers={"x-logberg-request-id": key}
    )
    cluster.run_until(lambda: bool(refused))
    assert refused[0].status == 409
    assert json.loads(refused[0].body)["code"] == "REQUEST_ID_REUSED"
    # No timer answers it once more.
    cluster.run(WRITE_WAIT_S + 1)
    assert len(refused) == len(replies) == 1


def test_the_same_id_for_another_request_is_refused_while_the_first_waits_for_its_turn(cluster):
    key = request_id(cluster)
    cluster.hold_the_turn()
    first = cluster.send("POST", "/v1/topics", body("t"), headers={"x-logberg-request-id": key})
    assert not first
    status, reply = create(cluster, "other", key)
    assert (status, reply["code"]) == (409, "REQUEST_ID_REUSED")
    cluster.run_until(lambda: bool(first))
    assert first[0].status == 200
    cluster.run(WRITE_WAIT_S + 1)


def test_an_id_that_the_floor_passes_while_it_waits_is_refused(cluster):
    machine = cluster.processes[1].machine
    waiting = request_id(cluster, 1)
    create(cluster, "t", request_id(cluster, 2))
    machine.wall_offset_us += (KEPT_MS - 2 * 60 * 60 * 1000) * 1000
    cluster.hold_the_turn()
    late = cluster.send(
        "POST", "/v1/topics", body("late"), headers={"x-logberg-request-id": waiting}
    )
    machine.wall_offset_us += 3 * 60 * 60 * 1000 * 1000
    cluster.run_until(lambda: bool(late))
    assert json.loads(late[0].body)["code"] == "REQUEST_EXPIRED"


def test_the_floor_counts_whatever_the_time(cluster):
    image = cluster.image
    floor = uuid7(cluster.processes[1].clock.wall_ms(), 7)
    floors = image.outcomes.floors.with_changes({"floor": floor})
    image = msgspec.structs.replace(
        image, outcomes=msgspec.structs.replace(image.outcomes, floors=floors)
    )
    now_ms = cluster.processes[1].clock.wall_ms()
    idempotency = Idempotency(300_000)
    with pytest.raises(LogbergError, match="REQUEST_EXPIRED"):
        idempotency.recall(RequestKey(floor, b"d" * 32), image, now_ms)
    newer = uuid7(now_ms, 8)
    assert idempotency.recall(RequestKey(newer, b"d" * 32), image, now_ms) is None


def test_an_id_that_is_not_a_uuid7_is_refused(cluster):
    for text in ("", "x", "AAAAAAAAQACAAAAAAAAAAA"):
        status, reply = create(cluster, "t", text)
        assert (status, reply["code"]) == (400, "INVALID_REQUEST")


def test_a_dry_run_does_not_need_an_id_and_refuses_a_wrong_one(cluster):
    topics = {**body("t"), "dryRun": True}
    assert cluster.ask("POST", "/v1/topics", topics)[0] == 200
    status, reply = cluster.ask(
        "POST", "/v1/topics", topics, headers={"x-logberg-request-id": "no id"}
    )
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert "UUIDv7" in reply["message"]


def test_an_id_from_the_future_is_refused_with_our_time(cluster):
    assert create(cluster, "near", request_id(cluster, 1, 4 * 60_000))[0] == 200
    status, reply = create(cluster, "far", request_id(cluster, 2, 6 * 60_000))
    assert (status, reply["code"]) == (400, "REQUEST_FROM_FUTURE")
    assert abs(reply["serverTimeMs"] - cluster.processes[1].clock.wall_ms()) < 1000


def test_an_id_below_the_floor_is_refused_and_never_executed_again(cluster):
    key, older = request_id(cluster, 5), request_id(cluster, 4)
    create(cluster, "t", key)
    cluster.processes[1].machine.wall_offset_us += (KEPT_MS + 1000) * 1000
    create(cluster, "next")
    assert cluster.image.outcomes.floor
    for expired in (key, older):
        status, reply = create(cluster, "t2", expired)
        assert (status, reply["code"]) == (409, "REQUEST_EXPIRED")
    assert cluster.image.topics.named("t2") is None


def test_a_leader_whose_clock_leapt_a_day_and_came_back_still_takes_new_ids(cluster):
    """Found by seed 1040: the log's time was a day ahead, and every request id looked too old."""
    machine = cluster.processes[1].machine
    create(cluster, "before", request_id(cluster, 1))
    machine.wall_offset_us += (KEPT_MS + 1000) * 1000
    assert create(cluster, "ahead")[0] == 200
    machine.wall_offset_us -= (KEPT_MS + 1000) * 1000
    for number in range(3):
        cluster.run(0.01)
        assert create(cluster, f"after-{number}", request_id(cluster, 10 + number))[0] == 200


def test_a_request_that_failed_may_be_tried_again_under_its_id(cluster):
    key = request_id(cluster)
    cluster.create_topic("t", factor=1)
    assert create(cluster, "t", key)[0] == 409
    cluster.ask("DELETE", "/v1/topics/t")
    assert create(cluster, "t", key)[0] == 200


# -- failover with proposals under way ------------------------------------------------------------


def test_what_was_proposed_and_lost_is_answered_as_unknown_and_can_be_retried(cluster):
    key = request_id(cluster)
    cluster.shared.cut(1)
    replies = cluster.send("POST", "/v1/topics", body("t"), headers={"x-logberg-request-id": key})
    cluster.run(0.1)
    assert not replies
    cluster.lead(2)
    cluster.run(0.1)
    assert not replies  # it doesn't know yet that it was deposed
    cluster.shared.heal()
    cluster.run(0.1)
    assert replies[0].status == 503
    lost = json.loads(replies[0].body)
    assert (lost["code"], lost["retriable"]) == ("REQUEST_TIMED_OUT", True)
    assert lost["requestId"] == key
    assert cluster.image.topics.named("t") is None
    assert create(cluster, "t", key)[0] == 200
    cluster.assert_equal()


def test_a_deposed_leader_forgets_what_did_not_last_and_can_lead_again(cluster):
    cluster.shared.cut(1)
    cluster.send("POST", "/v1/topics", body("ghost"))
    cluster.lead(2)
    cluster.shared.heal()
    cluster.run(0.1)
    cluster.lead(1)
    assert cluster.image.topics.named("ghost") is None
    cluster.create_topic("real", factor=1)
    cluster.assert_equal()


def test_an_error_that_rests_on_what_is_lost_is_not_told_as_a_fact(cluster):
    cluster.shared.cut(1)
    cluster.send("POST", "/v1/topics", body("t"))
    replies = cluster.send("POST", "/v1/topics", body("t"))
    cluster.run(0.2)
    assert not replies  # "exists" is not committed
    cluster.lead(2)
    cluster.shared.heal()
    cluster.run(0.1)
    assert replies[0].status in (421, 503)


def test_a_standby_says_who_leads_and_nobody_when_nobody_does(cluster):
    status, reply = create(cluster, "t", node=2)
    assert (status, reply["code"]) == (421, "NOT_CONTROLLER")
    assert (reply["leaderId"], reply["leaderUrl"]) == (1, "http://controller-1")
    cluster.kill(1)
    for node_id in (2, 3):
        cluster.shared.nodes[node_id].learn()
    status, reply = create(cluster, "t", node=2)
    assert (status, reply["code"]) == (503, "NO_QUORUM")


def test_a_change_that_is_not_committed_in_time_is_told_to_ask_again():
    cluster = Cluster(write_wait_s=3.0)
    cluster.online(1)
    cluster.shared.cut(2, 3)
    replies = cluster.send("POST", "/v1/topics", body("t"))
    cluster.run(2.9)
    assert not replies
    cluster.run(0.2)
    assert replies[0].status == 503
    cluster.shared.heal()
    cluster.run(0.2)
    assert len(replies) == 1
    assert cluster.image.topics.named("t") is not None


def test_every_epoch_begins_with_its_record(cluster):
    cluster.lead(2)
    cluster.lead(3)
    cluster.create_topic("t", factor=1)
    epochs = {}
    for batch in cluster.batches():
        epochs.setdefault(batch.header.epoch, batch)
    begins: list[Any] = [decode_records(batch.records)[0] for batch in epochs.values()]
    assert [b.leader_id for b in begins] == [1, 2, 3]
    assert all(isinstance(b, BeginEpochRecord) for b in begins)
    first = [type(r).__name__ for r in cluster.records()[:4]]
    assert first == [
        "BeginEpochRecord",
        "ClusterGenerationRecord",
        "KRaftVersionRecord",
        "VotersRecord",
    ]


@pytest.mark.parametrize("names", ["x-logberg", "x-quorate"])
def test_the_envelope_says_who_for_whom_and_why(names):
    """Also with the names that release 0.1 gives the headers."""
    cluster = Cluster(delegations={1: frozenset({"User:bob"})})
    cluster.online(1)
    headers = {
        f"{names}-reason": "because",
        f"{names}-client-id": "a-tool",
        f"{names}-on-behalf-of": "User:bob",
    }
    caller = Caller("Broker:1", "certificate", "10.1.1.1")
    status, _ = cluster.ask("POST", "/v1/topics", body("t"), headers=headers, caller=caller)
    assert status == 200
    p = cluster.batches()[-1].header.provenance
    assert (p.principal, p.auth_method, p.client_address) == ("Broker:1", "certificate", "10.1.1.1")
    assert (p.on_behalf_of, p.reason, p.client_id) == ("User:bob", "because", "a-tool")
    assert p.request_id
    assert p.request_digest


def test_a_request_id_is_one_under_both_names_and_answered_by_those_that_were_used(cluster):
    key = request_id(cluster)
    seen = []
    for name in ("x-logberg-request-id", "x-quorate-request-id"):
        reply = cluster.send("POST", "/v1/topics", body("t"), headers={name: key})
        cluster.run_until(lambda reply=reply: bool(reply))
        refused = cluster.send("GET", "/v1/topics/none", headers={name: key}, node=2)
        cluster.run_until(lambda refused=refused: bool(refused))
        seen.append((reply[0], refused[0]))
    (new, new_refused), (old, old_refused) = seen
    assert new.body == old.body
    assert json.loads(new.body)["requestId"] == key
    for reply, both in ((new, False), (new_refused, False), (old, True), (old_refused, True)):
        for header in ("versions", "leader", "request-id"):
            value = reply.headers.get(f"x-logberg-{header}")
            assert reply.headers.get(f"x-quorate-{header}") == (value if both else None)
    assert old_refused.headers["x-quorate-leader"] == new_refused.headers["x-logberg-leader"]
    assert "x-quorate-versions" in old.headers


def test_a_header_with_two_values_is_refused(cluster):
    headers = {"x-logberg-reason": "one", "x-quorate-reason": "two"}
    status, reply = cluster.ask("POST", "/v1/topics", body("t"), headers=headers)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert "send only x-logberg-reason" in reply["message"]
    same = dict.fromkeys(headers, "one")
    assert cluster.ask("POST", "/v1/topics", body("t"), headers=same)[0] == 200


def test_timestamps_never_go_back_and_a_lagging_clock_is_reported(cluster):
    before = cluster.image.timestamp_ms
    cluster.processes[2].machine.wall_offset_us = -3_600_000_000
    cluster.lead(2)
    cluster.create_topic("t", factor=1)
    assert cluster.image.timestamp_ms >= before
    assert cluster.events("clock_behind_log")


# -- large operations ------------------------------------------------------------------------------


def test_a_large_operation_is_one_transaction_over_many_batches(cluster):
    end = cluster.image.offset
    key = request_id(cluster)
    headers = {"x-logberg-request-id": key}
    status, reply = cluster.ask("POST", "/v1/topics", body("big", 30_000), headers=headers)
    assert status == 200
    assert reply["offset"] == cluster.image.offset == end + 30_000 + 1 + 3
    batches = [b for b in cluster.batches() if b.header.base_offset >= end]
    assert sum(len(b.encoded) for b in batches) > 1024 * 1024
    assert all(len(b.encoded) <= 1024 * 1024 for b in batches)
    records = cluster.records(end)
    assert isinstance(records[0], BeginTransactionRecord)
    assert isinstance(records[-1], EndTransactionRecord)
    assert isinstance(records[-2], RequestOutcomeRecord)
    assert cluster.image.transaction is None
    again = cluster.ask("POST", "/v1/topics", body("big", 30_000), headers=headers)
    assert again == (status, reply)
    cluster.assert_equal()


def test_nothing_of_a_transaction_is_read_before_its_end_and_a_new_epoch_discards_it(cluster):
    cluster.shared.cut(2, 3)
    replies = cluster.send("POST", "/v1/topics", body("big", 30_000))
    cluster.run(0.01)
    quorum = cluster.shared.nodes[1]
    cluster.run_until(lambda: len(quorum.waiting) >= 5)
    half = quorum.waiting[:3]
    quorum.waiting.clear()
    cluster.shared.heal()
    cluster.shared.commit(cluster.shared.epoch, half)
    cluster.run(0.1)
    for node_id in (1, 2, 3):
        controller = cluster.controllers[node_id]
        assert controller.image.transaction is not None
        _, reply = cluster.ask("GET", "/v1/topics", node=node_id, query={"consistency": "stale"})
        assert reply["topics"] == []
        assert reply["offset"] == controller.image.transaction.offset
        _, reply = cluster.ask("GET", "/v1/log", node=node_id, query={"offset": "0"})
        assert reply["nextOffset"] <= controller.image.transaction.offset
    cluster.lead(2)
    cluster.run(0.1)
    assert replies[0].status == 503
    assert all(c.image.transaction is None for c in cluster.controllers.values())
    assert cluster.image.topics.named("big") is None
    cluster.create_topic("small", factor=1)
    cluster.assert_equal()


@pytest.mark.parametrize(("good", "prepared"), [(0, True), (20_000, True), (20_000, False)])
def test_a_decision_that_cannot_be_replayed_is_refused_and_nothing_of_it_lasts(
    cluster, good, prepared
):
    topics = cluster.leader._leader.topics
    create_well = topics.create

    def create_wrongly(image, request):
        result = yield from create_well(image, request)
        records = [*result.records, RemoveTopicRecord(b"nobody's id 1234")]
        rests_on = result.rests_on if prepared else None
        return result._replace(records=records, rests_on=rests_on)

    topics.create = create_wrongly
    status, reply = cluster.ask("POST", "/v1/topics", body("t", good or 1))
    assert (status, reply["code"]) == (500, "UNKNOWN_SERVER_ERROR")
    topics.create = create_well
    assert cluster.image.transaction is None
    assert cluster.image.topics.named("t") is None
    kinds = [type(r) for r in cluster.records()]
    assert kinds.count(AbortTransactionRecord) == (not prepared)
    cluster.create_topic("t", factor=1)
    cluster.assert_equal()


def test_decisions_wait_for_the_end_of_a_transaction_and_contact_does_not(cluster):
    clock = cluster.processes[1].clock
    clock.cost_us = 50  # so that long work yields
    proposer = cluster.leader._leader.proposer
    big = cluster.send("POST", "/v1/topics", body("big", 20_000))
    cluster.run_until(lambda: proposer._large_changes.ready is not None)
    clock.cost_us = 5_000
    cluster.run_until(lambda: proposer.pending.image.transaction is not None)
    small = cluster.send("POST", "/v1/topics", body("small"))
    assert proposer.pending.image.transaction is not None
    assert proposer.waiting == 2
    cluster.run_until(lambda: bool(big and small))
    assert (big[0].status, small[0].status) == (200, 200)
    names = [r.name for r in cluster.records() if isinstance(r, TopicRecord)]
    assert names == ["big", "small"]
    kinds = [type(r) for r in cluster.records()]
    begin, end = kinds.index(BeginTransactionRecord), kinds.index(EndTransactionRecord)
    small_at = max(i for i, kind in enumerate(kinds) if kind is TopicRecord)
    assert begin < end < small_at
    clock.cost_us = 0
    cluster.assert_equal()


def test_a_new_leader_waits_until_all_that_was_committed_is_applied(cluster):
    clock = cluster.processes[2].clock
    clock.cost_us = 2000
    clock.call_soon = lambda callback: clock.call_later(0.005, callback)
    replies = cluster.send("POST", "/v1/topics", body("big", 20_000))
    cluster.run_until(lambda: bool(replies))
    cluster.run(0.001)
    assert not cluster.controllers[2]._replica.applier.idle
    cluster.lead(2)
    assert cluster.shared.nodes[2].resigned == []
    assert cluster.image.topics.named("big") is not None
    cluster.processes[2].clock.cost_us = 0
    cluster.assert_equal()


def test_many_changes_are_pipelined_and_all_are_answered(cluster):
    replies = [cluster.send("POST", "/v1/topics", body(f"t{i}")) for i in range(50)]
    cluster.run_until(lambda: all(replies))
    assert {r[0].status for r in replies} == {200}
    offsets = [json.loads(r[0].body)["offset"] for r in replies]
    assert offsets == sorted(offsets)
    assert len(cluster.shared.log) < 30  # many batches in one entry
    cluster.assert_equal()


def test_too_many_waiting_requests_are_told_to_slow_down():
    cluster = Cluster(waiting_decisions_max=2)
    cluster.online(1)
    cluster.hold_the_turn()
    replies = [cluster.send("POST", "/v1/topics", body(f"t{i}")) for i in range(4)]
    cluster.run_until(lambda: all(replies))
    assert sorted(r[0].status for r in replies) == [200, 200, 429, 429]
    throttled = next(json.loads(r[0].body) for r in replies if r[0].status == 429)
    assert throttled["retryAfterMs"] == 1000


def test_a_broker_stays_online_while_a_large_operation_is_decided(cluster):
    brokers = cluster.online(2)
    cluster.processes[1].clock.cost_us = 200
    replies = cluster.send("POST", "/v1/topics", body("big", 50_000))
    keep_alive(cluster, brokers, 3.0, step=0.5)
    cluster.run_until(lambda: bool(replies))
    assert not cluster.broker(2).fenced


def test_what_a_dry_run_shows_is_let_go_of_record_by_record():
    """Freeing all at once takes long if a broker holds hundreds of thousands of replicas."""
    records: list[Any] = [TopicRecord(str(number), bytes(16)) for number in range(3)]
    words = changes._words(records)
    seen = []
    for left in (2, 1, 0):
        seen.append(next(words)["data"]["name"])
        assert len(records) == left
    assert seen == ["0", "1", "2"]
