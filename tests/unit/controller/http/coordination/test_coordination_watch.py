"""Watches of coordination: a snapshot first, then each change once, and never a silent gap."""

from base64 import b64decode

import pytest

from controller.http.coordination import feed, scopes, watches
from metadata.messages import parts
from metadata.messages.wire import JSON, MSGPACK
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.managers.coordination.coordination_clients import (
    SessionClient,
    ask,
    commit,
    operation,
)

PATH = "/v1/coordination/watch"


@pytest.fixture
def cluster():
    return Cluster()


def watch(cluster, *scopes, after=None, wait_ms=0, node=None):
    """Ask once; return (revision, news by scope)."""
    body = {"scopes": [{"after": after, **scope} for scope in scopes], "waitMs": wait_ms}
    reply = ask(cluster, "POST", "/watch", body, node=node)
    return reply["revision"], {each["scope"]: each for each in reply.get("scopes", ())}


def held(cluster, *scopes, after=None, node=None):
    """Ask, and return the list of replies; the wait is long."""
    body = {"scopes": [{"after": after, **scope} for scope in scopes], "waitMs": 30_000}
    return cluster.send("POST", PATH, body, node=node)


def changes(news):
    """Return (key, value or None) of each change."""
    return [
        (c["key"], c.get("record") and b64decode(c["record"]["value"])) for c in news["changes"]
    ]


def test_the_state_comes_first_and_then_each_change_once(cluster):
    commit(cluster, operation("put", "k", b"0"), operation("put", "kk", b"x"))
    revision, news = watch(cluster, {"key": "k"}, {"prefix": "k"}, {"key": "none"})
    assert [r["key"] for r in news[0]["records"]] == ["k"]
    assert [r["key"] for r in news[1]["records"]] == ["k", "kk"]
    assert news[2]["kind"] == "snapshot"
    assert not news[2].get("records")
    commit(cluster, operation("update", "k", b"1"))
    commit(cluster, operation("delete", "k"), operation("put", "a", b""))
    commit(cluster, operation("put", "k", b"2"))
    revision, news = watch(cluster, {"key": "k"}, {"prefix": "k"}, {"prefix": ""}, after=revision)
    assert changes(news[0]) == changes(news[1]) == [("k", b"1"), ("k", None), ("k", b"2")]
    assert [key for key, _ in changes(news[2])] == ["k", "k", "a", "k"]
    assert watch(cluster, {"key": "k"}, after=revision) == (revision, {})


@pytest.mark.parametrize("node", [1, 2])
def test_a_watch_waits_for_its_own_news_on_every_node(cluster, node):
    client = SessionClient(cluster)
    start, _ = watch(cluster, {"key": "k"}, node=node)
    about_key = held(cluster, {"key": "k"}, after=start, node=node)
    about_prefix = held(cluster, {"prefix": "k/"}, after=start, node=node)
    about_lock = held(cluster, {"kind": "lock", "name": "l"}, after=start, node=node)
    commit(cluster, operation("put", "other", b""))
    cluster.run(0.5)
    assert [about_key, about_prefix, about_lock] == [[], [], []]
    commit(cluster, operation("put", "k/1", b""))
    cluster.run(0.1)
    assert list(map(len, (about_key, about_prefix, about_lock))) == [0, 1, 0]
    commit(cluster, operation("put", "k", b""))
    client.enter("lock", "l", "a")
    cluster.run(0.1)
    assert list(map(len, (about_key, about_prefix, about_lock))) == [1, 1, 1]


def test_news_of_a_queue_are_the_whole_queue(cluster):
    a, b = SessionClient(cluster), SessionClient(cluster)
    a.enter("election", "e", "a")
    scope = {"kind": "election", "name": "e"}
    revision, news = watch(cluster, scope)
    assert [e["id"] for e in news[0]["entries"]] == ["a"]
    b.enter("election", "e", "b")
    a.end()
    _, news = watch(cluster, scope, after=revision)
    assert [(e["id"], e["granted"]) for e in news[0]["entries"]] == [("b", True)]


def test_a_wait_ends_with_an_answer_that_says_how_far_it_is(cluster):
    start, _ = watch(cluster, {"key": "k"})
    commit(cluster, operation("put", "other", b""))
    revision, news = watch(cluster, {"key": "k"}, after=start, wait_ms=200)
    assert revision > start
    assert news == {}


def test_old_changes_are_read_from_the_log(cluster):
    start = cluster.image.offset - 1
    for number in range(20):
        commit(cluster, operation("upsert", "k", b"%d" % number))
    revision, news = watch(cluster, {"key": "k"}, {"prefix": "z"}, after=start)
    assert changes(news[0]) == [("k", b"%d" % number) for number in range(20)]
    assert list(news) == [0]
    assert watch(cluster, {"key": "k"}, after=revision)[1] == {}


def test_many_changes_come_in_parts(cluster, monkeypatch):
    monkeypatch.setattr(watches, "CHANGES_MAX", 3)
    old = cluster.image.offset - 1
    watch(cluster, {"key": "k"})
    for from_log in (True, False):
        start = old if from_log else cluster.image.offset - 1
        for number in range(8):
            commit(cluster, operation("upsert", "k", b"%d" % number))
        found, revision = [], start
        while len(found) < 8:
            revision, news = watch(cluster, {"key": "k"}, {"key": "z"}, after=revision)
            found += changes(news[0])
        assert found == [("k", b"%d" % number) for number in range(8)]


def test_where_history_is_gone_the_present_state_comes_and_says_so(cluster, monkeypatch):
    start = cluster.image.offset - 1
    commit(cluster, operation("put", "k", b"1"))
    monkeypatch.setattr(watches, "HISTORY_BYTES_MAX", 0)
    revision, news = watch(cluster, {"key": "k"}, {"kind": "lock", "name": "l"}, after=start)
    assert [each["kind"] for each in news.values()] == ["resync", "resync"]
    assert [r["key"] for r in news[0]["records"]] == ["k"]
    assert watch(cluster, {"key": "k"}, after=revision)[1] == {}


def test_what_the_feed_forgot_is_read_again(cluster, monkeypatch):
    monkeypatch.setattr(feed, "CHANGES_KEPT", 2)
    start, _ = watch(cluster, {"key": "k"})
    for number in range(6):
        commit(cluster, operation("upsert", "k", b"%d" % number))
    _, news = watch(cluster, {"key": "k"}, after=start)
    assert changes(news[0]) == [("k", b"%d" % number) for number in range(6)]


def test_a_node_that_was_restarted_tells_the_history(cluster):
    start, _ = watch(cluster, {"key": "k"}, node=2)
    cluster.kill(2)
    for number in range(5):
        commit(cluster, operation("upsert", "k", b"%d" % number))
    cluster.start(2)
    cluster.run(1.0)
    _, news = watch(cluster, {"key": "k"}, after=start, node=2)
    assert changes(news[0]) == [("k", b"%d" % number) for number in range(5)]


def test_changes_of_a_transaction_come_when_it_ends(cluster):
    half = bytes(500_000)
    for node in (1, 3):
        start, _ = watch(cluster, {"prefix": "a"}, node=node)
        replies = held(cluster, {"prefix": "a"}, after=start, node=node)
        commit(cluster, operation("upsert", "a1", half), operation("upsert", "a2", half))
        cluster.run(0.2)
        assert len(replies) == 1
        _, news = watch(cluster, {"prefix": "a"}, after=start, node=node)
        assert [c["key"] for c in news[0]["changes"]] == ["a1", "a2"]


def test_a_prefix_with_too_many_keys_is_to_be_listed(cluster, monkeypatch):
    commit(cluster, *(operation("put", f"p{n}", bytes(400_000)) for n in range(2)))
    commit(cluster, operation("put", "p3", bytes(400_000)))
    _, news = watch(cluster, {"prefix": "p"})
    assert news[0]["truncated"]
    assert not news[0].get("records")


def ask_again(cluster, scopes, afters):
    """Ask until nothing is postponed; return for each answer what was told in it."""
    told = []
    while not told or len(told[-1]) < len(scopes):
        asked = [{**scope, "after": after} for scope, after in zip(scopes, afters, strict=True)]
        revision, news = watch(cluster, *asked)
        done = {at: each for at, each in news.items() if each["kind"] != "postponed"}
        afters = [revision if at in done else after for at, after in enumerate(afters)]
        told.append({**(told[-1] if told else {}), **done})
        assert done, "each answer tells something"
    return [len(each) for each in told]


def test_what_does_not_fit_into_an_answer_is_postponed(cluster):
    large = bytes(900_000)
    for number in range(5):
        commit(cluster, operation("put", f"k{number}", large))
    scopes = [{"key": f"k{number}"} for number in range(5)]
    assert ask_again(cluster, scopes, [None] * 5) == [2, 4, 5]
    # Five scopes of one key have the same change.
    start, _ = watch(cluster, {"key": "k0"})
    commit(cluster, operation("update", "k0", large))
    assert ask_again(cluster, [{"key": "k0"}] * 5, [start] * 5) == [2, 4, 5]


def test_many_small_scopes_are_postponed_by_their_number(cluster, monkeypatch):
    monkeypatch.setattr(scopes, "ANSWER_ITEMS_MAX", 2)
    client = SessionClient(cluster)
    for number in range(3):
        client.enter("group", "g", f"m{number}")
    asked = [{"kind": "group", "name": "g"}, {"prefix": ""}, {"key": "none"}]
    assert ask_again(cluster, asked, [None] * 3) == [1, 3]


def test_a_watch_names_one_thing_a_scope(cluster):
    for scope in ({}, {"key": "a", "prefix": "b"}, {"kind": "lock"}):
        body = {"scopes": [scope]}
        status, error = cluster.ask("POST", PATH, body)
        assert (status, error["details"]["field"]) == (400, "scopes[0]")


def test_nothing_is_kept_when_nobody_watches_and_waiting_watches_are_forgotten(cluster):
    hub = cluster.leader._http.coordination
    start, _ = watch(cluster, {"key": "k"})
    replies = [held(cluster, {"key": f"k{n % 7}"}, after=start) for n in range(50)]
    assert len(hub) == 50
    commit(cluster, *(operation("put", f"k{n}") for n in range(7)))
    cluster.run(0.5)
    assert all(replies)
    assert len(hub) == 0
    assert not hub._waiting._by_key
    cluster.run(watches.IDLE_S + 2)
    assert not hub._feed.active
    # A watcher that comes back later misses nothing.
    commit(cluster, operation("put", "late"))
    _, news = watch(cluster, {"key": "late"}, {"key": "k1"}, after=start)
    assert [key for n in news.values() for key, _ in changes(n)] == ["late", "k1"]


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
def test_a_long_queue_is_described_while_it_is_sent(cluster, monkeypatch, content_type):
    client = SessionClient(cluster)
    for number in range(90):
        client.enter("group", "crowd", f"{number:03}", b"data")
    commit(cluster, operation("put", "k", b"v"))
    named = [{"kind": "group", "name": name} for name in ("crowd", "nobody", "crowd")]
    body = {"scopes": [{"key": "k"}, *named, {"prefix": "k"}]}

    def answer():
        headers = {"accept": content_type}
        replies = cluster.send("POST", PATH, body, headers=headers)
        cluster.run_until(lambda: bool(replies))
        return replies[0].body

    short = answer()
    monkeypatch.setattr(scopes, "QUEUE_AT_ONCE", 80)
    monkeypatch.setattr(parts, "GROUP", 7)
    assert answer() == short
    value = b'"ZGF0YQ=="' if content_type == JSON else b"\xc4\x04data"
    assert short.count(value) == 180
