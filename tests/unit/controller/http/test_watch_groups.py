"""Many watchers of a resource: one reading and one encoding for all, and nobody misses a change."""

import json
from collections import Counter
from typing import Any

import pytest

from controller.http import resource_watch
from ledger.batch import parse
from metadata.messages import parts
from metadata.messages.wire import JSON, MSGPACK
from metadata.records import ConfigRecord
from tests.unit.controller.cluster import Cluster

MANY = 60


@pytest.fixture
def cluster() -> Any:
    cluster = Cluster(nodes=1)
    cluster.online(1)
    cluster.create_topic("t", factor=1)
    cluster.create_topic("other", factor=1)
    cluster.run(0.2)
    return cluster


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What was parsed and encoded."""
    counted: Counter[str] = Counter()
    encode = parts.encode_in_parts

    def parsed(encoded: bytes) -> Any:
        counted["batches"] += 1
        return parse(encoded)

    def encoded(message: Any, media: str) -> Any:
        counted[media] += 1
        return encode(message, media)

    monkeypatch.setattr(resource_watch, "parse", parsed)
    monkeypatch.setattr(parts, "encode_in_parts", encoded)
    return counted


def watchers(cluster: Any, count: int, resource: str = "topic:t", **more: Any) -> list[list[Any]]:
    query = {"resource": resource, "waitMs": "20000", **more.pop("query", {})}
    return [cluster.send("GET", "/v1/watch", query=query, **more) for _ in range(count)]


def changed(cluster: Any, name: str, value: int) -> None:
    cluster.write(ConfigRecord(2, name, "retention.ms", str(value)))


def values(reply: Any) -> list[str]:
    return [each["record"]["data"]["value"] for each in json.loads(reply.body)["records"]]


def groups(cluster: Any) -> int:
    return len(cluster.leader._http.resource_watch._groups)


def test_one_change_is_read_and_encoded_once_for_all(cluster: Any, work: Counter[str]) -> None:
    waiting = watchers(cluster, MANY)
    packed = watchers(cluster, MANY, headers={"accept": MSGPACK})
    cluster.run(0.2)
    assert groups(cluster) == 1
    work.clear()
    changed(cluster, "t", 7)
    cluster.run_until(lambda: all(waiting) and all(packed))
    assert {reply.body for (reply,) in waiting} == {waiting[0][0].body}
    assert values(waiting[0][0]) == ["7"]
    assert work["batches"] == 1
    assert (work[JSON], work[MSGPACK]) == (1, 1)
    assert groups(cluster) == 0


def test_a_change_of_something_else_is_read_once_and_all_wait_on(
    cluster: Any, work: Counter[str]
) -> None:
    waiting = watchers(cluster, MANY)
    cluster.run(0.2)
    work.clear()
    for value in range(5):
        changed(cluster, "other", value)
        cluster.run(0.1)
    assert not any(waiting)
    assert work["batches"] == 5
    late = watchers(cluster, 1)
    cluster.run(0.1)
    changed(cluster, "t", 9)
    cluster.run_until(lambda: all(waiting) and all(late))
    assert {tuple(values(reply)) for (reply,) in (*waiting, *late)} == {("9",)}


def test_nobody_misses_a_change_that_comes_while_the_others_are_answered(cluster: Any) -> None:
    """Each answer goes out in its own pass, and a change is committed in between."""
    waiting = watchers(cluster, MANY)
    cluster.run(0.2)
    cluster.processes[1].clock.cost_us = 2_000
    changed(cluster, "t", 1)
    changed(cluster, "t", 2)
    cluster.processes[1].clock.cost_us = 0
    cluster.run_until(lambda: all(waiting))
    for (reply,) in waiting:
        seen = values(reply)
        go_on = json.loads(reply.body)["nextFrom"]
        (rest,) = watchers(cluster, 1, query={"from": go_on, "waitMs": "0"})
        cluster.run_until(lambda rest=rest: bool(rest))
        assert seen + values(rest[0]) == ["1", "2"]


def test_watchers_of_other_resources_and_places_are_apart(cluster: Any) -> None:
    end = cluster.image.offset
    mine, others = watchers(cluster, 3), watchers(cluster, 3, "topic:other")
    changed(cluster, "other", 1)
    cluster.run_until(lambda: all(others))
    from_before = watchers(cluster, 1, "topic:other", query={"from": str(end)})
    cluster.run_until(lambda: bool(from_before[0]))
    assert values(from_before[0][0]) == ["1"]
    assert not any(mine)
    changed(cluster, "t", 2)
    cluster.run_until(lambda: all(mine))
    assert values(mine[0][0]) == ["2"]


def test_each_watcher_waits_for_its_own_time(cluster: Any) -> None:
    short = watchers(cluster, 3, query={"waitMs": "1000"})
    long = watchers(cluster, 3, query={"waitMs": "10000"})
    cluster.run(0.5)
    changed(cluster, "other", 1)
    cluster.run(0.6)
    assert all(short)
    assert values(short[0][0]) == []
    assert not any(long)
    cluster.run(10.0)
    assert all(long)
    assert groups(cluster) == 0


def test_a_log_that_is_gone_is_an_error_for_all(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = watchers(cluster, MANY)
    cluster.run(0.2)

    def broken(_: bytes) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(resource_watch, "parse", broken)
    changed(cluster, "t", 1)
    cluster.run_until(lambda: all(waiting))
    assert {reply.status for (reply,) in waiting} == {503}
