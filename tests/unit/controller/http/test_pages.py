"""Pages of a long answer: every entry once, all from one offset, or else an error."""

import json

import pytest

from controller.http.pages import KEPT_MAX, KEPT_S
from tests.unit.controller.cluster import Cluster

PATHS = {"/v1/topics": "topics", "/v1/brokers": "brokers", "/v1/topics/wide": "partitions"}


@pytest.fixture
def cluster():
    made = Cluster()
    for broker_id in (1, 2, 3, 10, 20):
        made.online(broker_id)
    for name in ("a", "b", "c.d", "e", "f", "wide"):
        made.create_topic(name, partitions=23 if name == "wide" else 1)
    return made


def entries(reply, path):
    of = PATHS[path]
    return reply["topics"][0][of] if of == "partitions" else reply[of]


def page(cluster, path, *, node=None, **query):
    status, reply = cluster.ask("GET", path, query=query, node=node)
    return status, reply


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("limit", [1, 2, 5, 23, 1000])
def test_pages_make_the_whole_and_nothing_that_came_meanwhile(cluster, path, limit):
    _, whole = page(cluster, path)
    status, reply = page(cluster, path, limit=str(limit))
    assert status == 200
    read, offsets, turn = entries(reply, path), {reply["offset"]}, 0
    while reply["continuation"] is not None:
        # The state moves on between any two pages.
        cluster.create_topic(f"aa-{turn}")
        turn += 1
        if turn == 2:
            assert cluster.ask("DELETE", "/v1/topics/f")[0] == 200
        status, reply = page(cluster, path, limit=str(limit), continuation=reply["continuation"])
        assert status == 200
        assert 1 <= len(entries(reply, path)) <= limit
        read += entries(reply, path)
        offsets.add(reply["offset"])
    soft = ("lastContactMs", "appliedOffset")
    clean = [{k: v for k, v in entry.items() if k not in soft} for entry in read]
    assert clean == [
        {k: v for k, v in entry.items() if k not in soft} for entry in entries(whole, path)
    ]
    assert offsets == {whole["offset"]}


def test_brokers_and_partitions_come_all_where_no_pages_are_asked_for(cluster):
    """As in release 0.1, whose clients don't know pages."""
    for path in ("/v1/brokers", "/v1/topics/wide"):
        _, reply = page(cluster, path)
        assert reply["continuation"] is None
    assert len(entries(page(cluster, "/v1/topics/wide")[1], "/v1/topics/wide")) == 23


def test_after_a_while_the_state_is_gone(cluster):
    _, first = page(cluster, "/v1/topics", limit="2")
    cluster.create_topic("more")
    cluster.run(KEPT_S - 5)
    _, second = page(cluster, "/v1/topics", limit="2", continuation=first["continuation"])
    assert len(second["topics"]) == 2
    cluster.run(KEPT_S - 5)  # A page that is read keeps it longer.
    status, third = page(cluster, "/v1/topics", limit="2", continuation=second["continuation"])
    assert (status, third["continuation"]) == (200, None)
    cluster.run(KEPT_S + 5)
    status, error = page(cluster, "/v1/topics", limit="2", continuation=second["continuation"])
    assert (status, error["code"]) == (410, "CONTINUATION_EXPIRED")


def test_states_are_kept_for_so_many_readers(cluster):
    _, first = page(cluster, "/v1/topics", limit="2")
    for number in range(KEPT_MAX):
        cluster.create_topic(f"more-{number}")
        assert page(cluster, "/v1/topics", limit="2")[0] == 200
    status, error = page(cluster, "/v1/topics", limit="2", continuation=first["continuation"])
    assert (status, error["code"]) == (410, "CONTINUATION_EXPIRED")


def test_another_controller_goes_on_if_it_stands_at_the_same_offset(cluster):
    _, first = page(cluster, "/v1/topics", limit="2")
    cluster.run(0.5)
    status, second = page(
        cluster, "/v1/topics", limit="2", continuation=first["continuation"], node=2
    )
    assert status == 200
    assert [topic["name"] for topic in second["topics"]] == ["c.d", "e"]
    cluster.create_topic("more")
    cluster.run(0.5)
    status, error = page(
        cluster, "/v1/topics", limit="2", continuation=first["continuation"], node=3
    )
    assert (status, error["code"]) == (410, "CONTINUATION_EXPIRED")


def test_tokens_that_are_none_of_ours_are_refused(cluster):
    _, topics = page(cluster, "/v1/topics", limit="2")
    for token in ("", "x", "é", "AAAA", topics["continuation"][:-3], "A" * 100_000):
        status, error = page(cluster, "/v1/topics", limit="2", continuation=token)
        assert (status, error["code"]) == (400, "INVALID_REQUEST"), token
        assert "continuation" in error["message"]
    status, error = page(cluster, "/v1/brokers", limit="2", continuation=topics["continuation"])
    assert (status, error["code"]) == (400, "INVALID_REQUEST")
    for limit in ("0", "-1", "x"):
        assert page(cluster, "/v1/brokers", limit=limit)[0] == 400


def test_the_old_way_of_pages_is_as_it_was(cluster):
    status, reply = page(cluster, "/v1/topics", limit="2", after="b")
    assert [topic["name"] for topic in reply["topics"]] == ["c.d", "e"]
    assert reply["nextAfter"] == "e"
    assert json.dumps(reply)
    assert status == 200
