"""`GET /v1/watch`: each record about a resource once, in order, and none is left out."""

import gc
from itertools import pairwise

import pytest

from controller.http import resource_watch
from controller.http.held_requests import SPREAD
from controller.http.watched_records import Place, RecordFinder, WatchedResource
from ledger.errors import HistoryMissingError
from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from tests.unit.controller.cluster import DECLARED, Cluster


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.online(1, 2, features=DECLARED)
    cluster.write(FeatureLevelRecord("metadata.version", 33))
    return cluster


def watch(cluster, resource, start=None, node=None, **query):
    query["resource"] = resource
    if start is not None:
        query["from"] = str(start)
    status, reply = cluster.ask("GET", "/v1/watch", query=query, node=node)
    assert status == 200, reply
    return reply


def kinds(reply):
    return [each["record"]["type"] for each in reply["records"]]


def delete(cluster, name):
    assert cluster.ask("DELETE", f"/v1/topics/{name}")[0] == 200


def test_a_watch_has_what_is_about_the_resource_and_nothing_else(cluster):
    start = cluster.image.offset
    cluster.create_topic("t", factor=1)
    cluster.create_topic("other", partitions=3, factor=1)
    cluster.ask(
        "PATCH", "/v1/configs/topic/t", {"configs": [{"name": "retention.ms", "value": "5"}]}
    )
    delete(cluster, "t")
    delete(cluster, "other")
    reply = watch(cluster, "topic:t", f"{start}.")
    about = ["TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD"]
    assert kinds(reply) == about
    first = reply["records"][0]
    assert (first["principal"], first["operation"]) == ("User:alice", "CreateTopics")
    assert reply["nextFrom"].startswith(f"{cluster.image.offset}.")
    assert kinds(watch(cluster, "partition:t-0", f"{start}.")) == ["PARTITION_RECORD"]
    assert kinds(watch(cluster, "broker:1", 0))[0] == "REGISTER_BROKER_RECORD"
    assert kinds(watch(cluster, "broker:3", 0)) == []


@pytest.mark.parametrize("limit", [1, 500])
def test_a_watch_that_goes_on_misses_nothing_and_repeats_nothing(cluster, monkeypatch, limit):
    """Each reading is cut after `limit` bytes, and topics of the name come and go meanwhile."""
    monkeypatch.setattr(resource_watch, "READ_MAX_BYTES", limit)
    monkeypatch.setattr(resource_watch, "_PIECE_BYTES", 1)
    start, found = str(cluster.image.offset), []
    for turn in range(4):
        cluster.create_topic("t", factor=1)
        cluster.create_topic(f"other-{turn}", factor=1)
        delete(cluster, f"other-{turn}")
        if turn % 2:
            reply = watch(cluster, "topic:t", start)
            start, found = reply["nextFrom"], found + reply["records"]
        delete(cluster, "t")
    while int(start.partition(".")[0]) < cluster.image.offset:
        reply = watch(cluster, "topic:t", start, node=1 + len(found) % 3)
        start, found = reply["nextFrom"], found + reply["records"]
    assert [each["record"]["type"] for each in found] == [
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "REMOVE_TOPIC_RECORD",
    ] * 4
    assert all(one["offset"] < other["offset"] for one, other in pairwise(found))


def test_a_watch_that_begins_in_the_past_has_too_much_rather_than_too_little(cluster):
    """Nobody knows any more whose removal it is."""
    cluster.create_topic("t", factor=1)
    cluster.create_topic("other", factor=1)
    start = cluster.image.offset
    delete(cluster, "t")
    delete(cluster, "other")
    assert kinds(watch(cluster, "topic:t", start)) == ["REMOVE_TOPIC_RECORD"] * 2
    assert kinds(watch(cluster, "topic:t", watch(cluster, "topic:t", 0)["nextFrom"])) == []
    assert "REMOVE_TOPIC_RECORD" not in kinds(watch(cluster, "broker:1", start))


def test_a_watch_waits_for_the_next_record_about_the_resource(cluster):
    cluster.create_topic("t", factor=1)
    cluster.run(0.2)
    query = {"resource": "topic:t", "waitMs": "20000"}
    waiting = cluster.send("GET", "/v1/watch", query=query, node=3)
    cluster.create_topic("other", factor=1)
    cluster.run(1.0)
    assert not waiting
    delete(cluster, "other")
    delete(cluster, "t")
    cluster.run_until(lambda: bool(waiting))
    assert b"REMOVE_TOPIC_RECORD" in waiting[0].body
    assert waiting[0].body.count(b'"record"') == 1


def test_a_watch_goes_on_at_a_controller_that_is_behind(cluster):
    cluster.shared.cut(3)
    cluster.create_topic("t", factor=1)
    start = watch(cluster, "topic:t", 0)["nextFrom"]
    behind = cluster.send("GET", "/v1/watch", query={"resource": "topic:t", "from": start}, node=3)
    cluster.run(1.0)
    assert not behind
    cluster.run(5.0)
    assert behind[0].status == 416


def test_a_watch_without_news_is_answered_when_its_wait_is_over(cluster):
    began, end = cluster.world.now, cluster.image.offset
    reply = watch(cluster, "topic:t", waitMs="1500")
    assert reply["records"] == []
    assert reply["nextFrom"] == f"{end}."
    assert 1.5 * (1 - SPREAD) <= cluster.world.now - began <= 1.5


def test_what_a_transaction_did_not_do_is_not_shown(cluster):
    start = cluster.image.offset
    record = ConfigRecord(2, "t", "retention.ms", "1")
    cluster.write(BeginTransactionRecord("a"))
    cluster.write(record)
    assert kinds(watch(cluster, "topic:t", start)) == []
    cluster.write(AbortTransactionRecord("no"))
    reply = watch(cluster, "topic:t", start)
    assert kinds(reply) == []
    cluster.write(BeginTransactionRecord("b"), record)
    cluster.write(record, EndTransactionRecord())
    assert kinds(watch(cluster, "topic:t", reply["nextFrom"])) == ["CONFIG_RECORD"] * 2


@pytest.mark.parametrize(
    ("query", "status", "code", "field"),
    [
        ({}, 400, "INVALID_REQUEST", "resource"),
        ({"resource": "topic"}, 400, "INVALID_REQUEST", "resource"),
        ({"resource": "topic:"}, 400, "INVALID_REQUEST", "resource"),
        ({"resource": "colour:red"}, 400, "INVALID_REQUEST", "resource"),
        ({"resource": "topic:" + "t" * 1001}, 400, "INVALID_REQUEST", "resource"),
        ({"resource": "topic:t", "from": "x"}, 400, "INVALID_REQUEST", "from"),
        ({"resource": "topic:t", "from": "-1"}, 400, "INVALID_REQUEST", "from"),
        ({"resource": "topic:t", "from": "5.abc"}, 400, "INVALID_REQUEST", "from"),
        ({"resource": "topic:t", "from": "5." + "A" * 21 + "B"}, 400, "INVALID_REQUEST", "from"),
        ({"resource": "topic:t", "from": "9" * 19}, 400, "INVALID_REQUEST", "from"),
        ({"resource": "topic:t", "from": "999999"}, 416, "OFFSET_OUT_OF_RANGE", "from"),
        ({"resource": "topic:t", "waitMs": "x"}, 400, "INVALID_REQUEST", None),
    ],
)
def test_bad_watches(cluster, query, status, code, field):
    answered, reply = cluster.ask("GET", "/v1/watch", query=query)
    assert (answered, reply["code"]) == (status, code)
    assert reply["details"].get("field") == field


def test_an_offset_that_the_log_no_longer_has_is_a_clear_error(cluster, monkeypatch):
    ledger = cluster.leader.ledger
    cluster.create_topic("t", factor=1)
    missing = HistoryMissingError(0, 7)

    def gone(offset, _max_bytes, _up_to):
        raise missing

    monkeypatch.setattr(ledger, "read_from", gone)
    status, reply = cluster.ask("GET", "/v1/watch", query={"resource": "topic:t", "from": "0"})
    assert (status, reply["code"]) == (416, "OFFSET_OUT_OF_RANGE")
    assert reply["details"] == {"field": "from", "logStart": "7"}


def test_what_was_found_is_few_objects(cluster):
    """The collector would visit them all, and freeing them together would stop the loop."""
    cluster.create_topic("t", partitions=2_000, factor=1)
    cluster.create_topic("t-2", partitions=2_000, factor=1)
    for name in ("t", "t-2"):
        finder = RecordFinder(WatchedResource.read(f"topic:{name}"), Place(0), cluster.image)
        for batch in cluster.batches():
            assert all(step is None for step in finder.take(batch))
        assert len(finder.found) > 2_000
        reached, ahead = set(), [finder.found]
        while ahead:
            one = ahead.pop()
            if id(one) not in reached and not isinstance(one, type):
                reached.add(id(one))
                ahead += gc.get_referents(one)
        assert len(reached) < 200
