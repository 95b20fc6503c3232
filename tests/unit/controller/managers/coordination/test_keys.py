"""Keys: what a commit checks and writes, all or none."""

import pytest

from controller.config import CoordinationLimits
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.managers.coordination.coordination_clients import (
    SessionClient,
    ask,
    commit,
    operation,
    refused,
    value,
)


@pytest.fixture
def cluster():
    return Cluster()


def test_put_update_upsert_and_delete(cluster):
    assert value(cluster, "k") is None
    put = commit(cluster, operation("put", "k", b"1"))
    record = ask(cluster, "GET", "/key", query={"key": "k"})["record"]
    assert record["createRevision"] == record["modRevision"] == put["revision"]
    assert record["version"] == 1
    update = commit(cluster, operation("update", "k", b"2", expect=put["revision"]))
    record = ask(cluster, "GET", "/key", query={"key": "k"})["record"]
    assert (record["createRevision"], record["modRevision"]) == (
        put["revision"],
        update["revision"],
    )
    assert (record["version"], value(cluster, "k")) == (2, b"2")
    commit(cluster, operation("upsert", "k", b""), operation("upsert", "new", b"n"))
    assert (value(cluster, "k"), value(cluster, "new")) == (b"", b"n")
    assert commit(cluster, operation("delete", "k"))["applied"] == [True]
    assert commit(cluster, operation("delete", "k"))["applied"] == [False]
    again = commit(cluster, operation("put", "k", b"3"))
    assert again["revision"] > update["revision"]
    cluster.assert_equal()


FAILING = [
    ({"operations": [operation("put", "a")]}, "KEY_EXISTS", {"operation": "0", "key": "a"}),
    ({"operations": [operation("update", "b")]}, "KEY_MISSING", {"operation": "0"}),
    (
        {"operations": [operation("upsert", "c"), operation("update", "a", expect=1)]},
        "REVISION_MISMATCH",
        {"operation": "1", "key": "a"},
    ),
    (
        {"operations": [operation("delete", "b", expect=1)]},
        "REVISION_MISMATCH",
        {"current": "-1"},
    ),
    (
        {"checks": [{"key": "b"}, {"key": "a"}], "operations": [operation("put", "c")]},
        "REVISION_MISMATCH",
        {"check": "1", "key": "a"},
    ),
    (
        {"checks": [{"key": "b", "modRevision": 5}]},
        "REVISION_MISMATCH",
        {"check": "0", "current": "-1"},
    ),
    (
        {"fences": [{"kind": "lock", "name": "l", "token": 3}]},
        "FENCED",
        {"fence": "0", "current": "-1"},
    ),
    ({"operations": [operation("put", "")]}, "INVALID_KEY", {"field": "operations[0].key"}),
    ({"operations": [operation("put", "x" * 1025)]}, "INVALID_KEY", {}),
    ({"operations": [operation("put", "c"), operation("put", "c")]}, "INVALID_REQUEST", {}),
    ({"operations": [operation("put", "c", bytes(1 << 20))]}, "VALUE_TOO_LARGE", {}),
    ({"checks": [{"key": "a"}] * 1001}, "TXN_TOO_LARGE", {"limit": "1000"}),
    ({"sessionId": "AAAAAAAAAAAAAAAAAAAAAA"}, "SESSION_LOST", {}),
]


@pytest.mark.parametrize(("body", "code", "details"), FAILING, ids=lambda x: str(x)[:40])
def test_a_commit_that_fails_says_where_and_writes_nothing(cluster, body, code, details):
    commit(cluster, operation("put", "a", b"1"))
    offset = cluster.image.offset
    error = refused(cluster, "/commit", body, code)
    assert details.items() <= error["details"].items()
    assert cluster.image.offset == offset


def test_a_token_that_was_replaced_writes_no_more(cluster):
    old, new = SessionClient(cluster), SessionClient(cluster)
    first = old.enter("lock", "l", "old")["token"]
    new.enter("lock", "l", "new")
    fence = {"kind": "lock", "name": "l", "token": first}
    commit(cluster, operation("put", "guarded", b"old"), fences=[fence])
    old.end()
    body = {"fences": [fence], "operations": [operation("upsert", "guarded", b"late")]}
    error = refused(cluster, "/commit", body, "FENCED")
    second = int(error["details"]["current"])
    assert second > first
    commit(cluster, operation("update", "guarded", b"new"), fences=[{**fence, "token": second}])
    assert value(cluster, "guarded") == b"new"


def test_tokens_are_lifted_above_imported_ones(cluster):
    client = SessionClient(cluster)
    before = client.enter("lock", "l", "a")["token"]
    commit(cluster, operation("put", "imported"), tokensAbove=10**15)
    client.leave("lock", "l", "a")
    after = client.enter("lock", "l", "a")
    assert after["token"] > 10**15 > before
    commit(cluster, tokensAbove=5)
    fence = {"kind": "lock", "name": "l", "token": after["token"]}
    commit(cluster, operation("put", "k"), fences=[fence])
    cluster.assert_equal()


def test_the_same_request_is_done_once(cluster):
    done = commit(cluster, operation("put", "k", b"1"))
    headers = {"x-logberg-request-id": done["requestId"]}
    body = {"operations": [operation("put", "k", b"1")]}
    again = ask(cluster, "POST", "/commit", body, headers=headers)
    assert again["revision"] == done["revision"]


def test_a_list_has_all_keys_with_a_prefix_in_order_and_of_one_revision(cluster):
    keys = [f"p/{n:03}" for n in range(30)] + ["p", "q", "o", "p0", "p/é", "p/한"]
    commit(cluster, *(operation("put", key, key.encode()) for key in keys))
    query = {"prefix": "p/", "limit": "7"}
    found, revisions = [], set()
    while query:
        reply = ask(cluster, "GET", "/keys", query=query)
        found += [record["key"] for record in reply["records"]]
        revisions.add(reply["revision"])
        commit(cluster, operation("upsert", f"p/late{len(found)}"))
        query = reply.get("continuation") and {**query, "continuation": reply["continuation"]}
    assert found == sorted(key for key in keys if key.startswith("p/"))
    assert len(revisions) == 1
    everything = ask(cluster, "GET", "/keys", query={"keysOnly": "true"})["records"]
    assert {record["value"] for record in everything} == {""}
    assert set(keys) <= {record["key"] for record in everything}


def test_a_large_commit_is_written_whole(cluster):
    """Two batches of the log make one transaction: the offsets move by its Begin."""
    half = bytes(500_000)
    done = commit(cluster, operation("put", "a", half), operation("put", "b", half))
    record = ask(cluster, "GET", "/key", query={"key": "b"})["record"]
    assert record["modRevision"] == done["revision"]
    assert cluster.records()[record["modRevision"]].key == "b"
    cluster.assert_equal()


def test_the_store_has_a_limit_and_what_shrinks_it_is_always_allowed():
    cluster = Cluster(coordination=CoordinationLimits(keys=2, total_bytes=4_000))
    commit(cluster, operation("put", "a", bytes(2_000)))
    body = {"operations": [operation("put", "b", bytes(2_000))]}
    error = refused(cluster, "/commit", body, "COORDINATION_FULL")
    assert error["details"] == {"what": "bytes", "limit": "4000"}
    commit(cluster, operation("upsert", "a", b""), operation("put", "b", bytes(2_000)))
    body = {"operations": [operation("put", "c")]}
    assert refused(cluster, "/commit", body, "COORDINATION_FULL")["details"]["what"] == "keys"
    commit(cluster, operation("delete", "a"))
    commit(cluster, operation("put", "c"))
    limits = ask(cluster, "GET", "/limits")
    assert (limits["keys"], limits["keysMax"]) == (2, 2)
