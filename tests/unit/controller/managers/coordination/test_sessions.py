"""Sessions: they live while they are renewed, and end with all their entries."""

import json

import pytest

from metadata.records import EndSessionRecord, FeatureLevelRecord, SessionEnd
from runtime.http.requests import ANONYMOUS, Caller
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.managers.coordination.coordination_clients import (
    SessionClient,
    ask,
    entries,
    operation,
    refused,
)
from tests.unit.controller.real_cluster import RealCluster

BOB = Caller("User:bob", "token", "10.0.0.8")


@pytest.fixture
def cluster():
    return Cluster()


def ends(cluster):
    """Return the reasons of all sessions that ended."""
    return [r.reason for r in cluster.records() if isinstance(r, EndSessionRecord)]


def sessions(cluster):
    return ask(cluster, "GET", "/sessions")["sessions"]


def test_a_session_is_opened_and_ended(cluster):
    first, second = SessionClient(cluster, "first"), SessionClient(cluster, "second")
    assert second.revision > first.revision
    assert {s["clientName"]: s["entries"] for s in sessions(cluster)} == {"first": 0, "second": 0}
    first.enter("group", "g", "1")
    first.enter("lock", "l", "1")
    assert first.end()["ended"]
    assert entries(cluster, "group", "g") == entries(cluster, "lock", "l") == []
    assert [s["clientName"] for s in sessions(cluster)] == ["second"]
    assert not first.end()["ended"]
    assert first.renew(status=410)["code"] == "SESSION_LOST"
    assert ends(cluster) == [SessionEnd.CLOSED]


@pytest.mark.parametrize(("asked", "granted"), [(1, 500), (5_000, 5_000), (10**9, 600_000)])
def test_a_ttl_is_moved_into_its_bounds(cluster, asked, granted):
    assert ask(cluster, "POST", "/sessions", {"ttlMs": asked})["ttlMs"] == granted


def test_a_session_lives_while_it_is_renewed_and_not_much_longer(cluster):
    alive, silent = SessionClient(cluster, ttl_ms=3_000), SessionClient(cluster, ttl_ms=3_000)
    alive.enter("election", "e", "waits-behind")
    silent.enter("lock", "l", "silent")
    alive.enter("lock", "l", "alive")
    offset = cluster.image.offset
    for _ in range(2):
        cluster.run(1.4)
        assert alive.renew()["ttlMs"] == 3_000
    assert cluster.image.offset == offset, "a renewal was written"
    assert len(sessions(cluster)) == 2
    cluster.run(0.3)
    assert [s["sessionId"] for s in sessions(cluster)] == [alive.session_id]
    assert entries(cluster, "lock", "l") == [("alive", True)]
    assert ends(cluster) == [SessionEnd.EXPIRED]
    assert silent.renew(status=410)["code"] == "SESSION_LOST"


def test_a_new_leader_gives_each_session_its_full_ttl_again(cluster):
    SessionClient(cluster, ttl_ms=4_000)
    cluster.run(3.5)
    cluster.lead(2)
    cluster.run(3.8)
    assert len(sessions(cluster)) == 1
    cluster.run(0.5)
    assert sessions(cluster) == []
    cluster.assert_equal()


def test_a_leader_that_stood_still_ends_no_session_at_once():
    cluster = RealCluster(nodes=1)
    client = SessionClient(cluster, ttl_ms=4_000)
    cluster.run(1.0)
    cluster.hosts[1].pause()
    cluster.run(20.0)
    cluster.hosts[1].resume()
    cluster.run(0.5)
    assert client.renew()["ttlMs"] == 4_000


def test_many_sessions_end_one_after_another(cluster):
    for number in range(50):
        SessionClient(cluster, str(number), ttl_ms=2_000).enter("group", "g", str(number))
    cluster.run(3.0)
    assert sessions(cluster) == []
    assert entries(cluster, "group", "g") == []
    cluster.assert_equal()


def test_only_its_principal_uses_a_session_but_anybody_may_revoke_it(cluster):
    client = SessionClient(cluster)
    body = {"sessionId": client.session_id}
    refused(cluster, "/sessions/renew", body, "CLUSTER_AUTHORIZATION_FAILED", caller=BOB)
    refused(cluster, "/sessions/end", body, "CLUSTER_AUTHORIZATION_FAILED", caller=BOB)
    reply = ask(cluster, "POST", "/sessions/end", {**body, "revoke": True}, caller=BOB)
    assert reply["ended"]
    assert ends(cluster) == [SessionEnd.REVOKED]


NAMED = {"kind": "lock", "name": "l", "id": "a"}
WITH_ANOTHERS_SESSION = [
    ("/sessions/renew", {}),
    ("/sessions/end", {}),
    ("/entries", NAMED),
    ("/entries", NAMED | {"id": "b"}),
    ("/entries", {"kind": "group", "name": "g", "id": "a"}),
    ("/entries/change", NAMED | {"data": "AAAA"}),
    ("/entries/leave", NAMED),
    ("/commit", {"operations": [operation("upsert", "k")]}),
    ("/commit", {}),
]


@pytest.mark.parametrize(("path", "body"), WITH_ANOTHERS_SESSION)
@pytest.mark.parametrize("caller", [BOB, ANONYMOUS], ids=["Bob", "nobody"])
def test_nobody_acts_with_anothers_session(cluster, path, body, caller):
    alice = Caller("User:alice", "token", "10.0.0.7")
    opened = ask(cluster, "POST", "/sessions", {"ttlMs": 10_000}, caller=alice)
    theirs = {"sessionId": opened["sessionId"]}
    ask(cluster, "POST", "/entries", NAMED | theirs, caller=alice)
    before = cluster.image.offset
    error = refused(cluster, path, body | theirs, "CLUSTER_AUTHORIZATION_FAILED", caller=caller)
    assert f"is not that of {caller.principal}" in error["message"]
    assert cluster.image.offset == before
    assert entries(cluster, "lock", "l") == [("a", True)]
    ask(cluster, "POST", path, body | theirs, caller=alice)


def test_a_request_id_of_somebody_else_doesnt_answer_with_their_session(cluster):
    alice = Caller("User:alice", "token", "10.0.0.7")
    first = ask(cluster, "POST", "/sessions", {"ttlMs": 1000}, caller=alice)
    headers = {"x-logberg-request-id": first["requestId"]}
    error = refused(
        cluster, "/sessions", {"ttlMs": 1000}, "REQUEST_ID_REUSED", headers=headers, caller=BOB
    )
    assert first["sessionId"] not in str(error)


def test_a_standby_renews_nothing_and_says_who_leads(cluster):
    client = SessionClient(cluster)
    body = {"sessionId": client.session_id}
    error = refused(cluster, "/sessions/renew", body, "NOT_CONTROLLER", node=2)
    assert error["leaderId"] == 1


def test_a_leader_that_was_replaced_renews_nothing():
    """Its successor has ended the session; an old leader's word would keep the client going."""
    cluster = RealCluster()
    client = SessionClient(cluster, ttl_ms=2_000)
    old = cluster.shared.leader
    others = [node for node in cluster.hosts if node != old]
    cluster.network.cut([old], others)
    body = {"sessionId": client.session_id}
    replies = cluster.send("POST", "/v1/coordination/sessions/renew", body, node=old)
    cluster.run_until(lambda: cluster.shared.leader not in (None, old))
    cluster.run(6.0)
    assert json.loads(replies[0].body)["code"] == "NO_QUORUM"
    assert sessions(cluster) == []


def test_the_same_request_opens_one_session(cluster):
    first = ask(cluster, "POST", "/sessions", {"ttlMs": 1000})
    headers = {"x-logberg-request-id": first["requestId"]}
    again = ask(cluster, "POST", "/sessions", {"ttlMs": 1000}, headers=headers)
    assert again["sessionId"] == first["sessionId"]


def test_below_its_level_nothing_is_written():
    cluster = Cluster(initial_features={"logberg.version": 3})
    error = refused(cluster, "/sessions", {"ttlMs": 1000}, "UNSUPPORTED_VERSION")
    assert "logberg.version 4" in error["message"]
    cluster.decide(FeatureLevelRecord("logberg.version", 4))
    assert SessionClient(cluster).revision > 0
