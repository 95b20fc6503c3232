"""Groups, elections and locks: who is granted, in which order, with which tokens."""

import pytest

from tests.unit.controller.cluster import Cluster
from tests.unit.controller.managers.coordination.coordination_clients import (
    SessionClient,
    ask,
    entries,
    refused,
)


@pytest.fixture
def cluster():
    return Cluster()


def test_members_of_a_group_are_all_granted(cluster):
    a, b = SessionClient(cluster), SessionClient(cluster)
    first, second = a.enter("group", "g", "1", b"one"), b.enter("group", "g", "2")
    assert (first["granted"], second["granted"]) == (True, True)
    assert second["token"] > first["token"]
    assert entries(cluster, "group", "g") == [("1", True), ("2", True)]
    assert entries(cluster, "group", "other") == []


def test_the_next_candidate_leads_in_the_batch_in_which_the_leader_goes(cluster):
    a, b, c = (SessionClient(cluster) for _ in range(3))
    term = a.enter("election", "e", "a")
    assert term["granted"]
    assert not b.enter("election", "e", "b")["granted"]
    assert b.enter("election", "e", "b")["token"] == -1
    c.enter("election", "e", "c")
    start = cluster.image.offset
    assert a.leave("election", "e", "a", token=term["token"])["left"]
    assert entries(cluster, "election", "e") == [("b", True), ("c", False)]
    granted = [e for e in cluster.image.coordination.queue((2, "e")) if e.token >= 0]
    assert [e.token for e in granted] == [start + 1]
    assert granted[0].token > term["token"]


def test_a_term_that_is_over_is_not_left_a_second_time(cluster):
    a, b = SessionClient(cluster), SessionClient(cluster)
    term = a.enter("election", "e", "a")
    b.enter("election", "e", "b")
    a.leave("election", "e", "a", token=term["token"])
    again = a.enter("election", "e", "a")
    assert not again["granted"]
    assert not a.leave("election", "e", "a", token=term["token"])["left"]
    assert not b.leave("election", "e", "a")["left"]
    assert entries(cluster, "election", "e") == [("b", True), ("a", False)]


SHARING = [
    # (what happens, and who holds the lock afterwards)
    ("a+ b+ c", ["a", "b"]),
    ("a+ c b+", ["a"]),
    ("a+ c b+ -c", ["a", "b"]),
    ("a+ b+ c -a", ["b"]),
    ("a+ b+ c -a -b", ["c"]),
    ("c a+ b+ d -c", ["a", "b"]),
    ("c a+ d b+ -c", ["a"]),
    ("c a+ d b+ -c -d", ["a", "b"]),
    ("a b c -b -a", ["c"]),
]


@pytest.mark.parametrize(("steps", "holders"), SHARING)
def test_readers_share_a_lock_and_nobody_overtakes(cluster, steps, holders):
    client = SessionClient(cluster)
    for step in steps.split():
        if step[0] == "-":
            client.leave("lock", "l", step[1:])
        else:
            client.enter("lock", "l", step[0], shared=step.endswith("+"))
    assert [i for i, granted in entries(cluster, "lock", "l") if granted] == holders


def test_data_changes_and_the_grant_stays(cluster):
    a, b = SessionClient(cluster), SessionClient(cluster)
    before = a.enter("election", "e", "a", b"1")
    after = a.change("election", "e", "a", b"2")
    assert (after["token"], after["place"]) == (before["token"], before["place"])
    assert after["revision"] > before["revision"]
    assert cluster.image.coordination.entries[2, "e", "a"].data == b"2"
    offset = cluster.image.offset
    assert a.enter("election", "e", "a", b"2")["revision"] == after["revision"]
    assert cluster.image.offset == offset
    body = {"kind": "election", "name": "e", "id": "a", "sessionId": b.session_id, "data": ""}
    refused(cluster, "/entries/change", body, "NOT_HELD")
    error = refused(cluster, "/entries", body, "ENTRY_EXISTS")
    assert error["details"]["sessionId"] == a.session_id


def test_a_broken_grant_goes_to_the_next(cluster):
    a, b = SessionClient(cluster), SessionClient(cluster)
    a.enter("lock", "l", "a")
    b.enter("lock", "l", "b")
    status, reply = cluster.ask(
        "POST", "/v1/coordination/entries/break", {"kind": "lock", "name": "l"}
    )
    assert (status, reply["broken"]) == (200, True)
    assert entries(cluster, "lock", "l") == [("b", True)]
    refused(cluster, "/entries/break", {"kind": "group", "name": "g"}, "INVALID_REQUEST")


def test_entries_are_listed_by_resource_by_kind_and_by_session(cluster):
    a, b = SessionClient(cluster), SessionClient(cluster)
    for client, kind, name, entry_id in (
        (b, "lock", "m", "b"),
        (a, "lock", "l", "z"),
        (b, "lock", "l", "b"),
        (a, "group", "l", "a"),
    ):
        client.enter(kind, name, entry_id)

    def listed(**query):
        found, pages = [], 0
        reply = {"continuation": ""}
        while (token := reply.get("continuation")) is not None:
            more = {"continuation": token} if token else {}
            reply = ask(cluster, "GET", "/entries", query={**query, **more})
            found += [(each["kind"], each["name"], each["id"]) for each in reply["entries"]]
            pages += 1
        return found, pages

    of_locks = [("lock", "l", "b"), ("lock", "l", "z"), ("lock", "m", "b")]
    assert listed(kind="lock") == (of_locks, 1)
    assert listed(kind="lock", limit="1") == (of_locks, 3)
    assert listed(kind="lock", limit="2") == (of_locks, 2)
    assert listed(kind="lock", name="l")[0] == [("lock", "l", "z"), ("lock", "l", "b")]
    assert listed(kind="election") == ([], 1)
    assert listed(sessionId=a.session_id)[0] == [("group", "l", "a"), ("lock", "l", "z")]
    assert listed(sessionId="AAAAAAAAAAAAAAAAAAAAAA") == ([], 1)
    sessions = ask(cluster, "GET", "/sessions", query={"sessionId": b.session_id})["sessions"]
    assert [(each["sessionId"], each["entries"]) for each in sessions] == [(b.session_id, 2)]


WRONG = [
    ({"name": ""}, "INVALID_KEY"),
    ({"id": "x" * 1025}, "INVALID_KEY"),
    ({"id": "\u001b"}, "INVALID_KEY"),
    ({"kind": "election", "shared": True}, "INVALID_REQUEST"),
    ({"kind": "queue"}, "INVALID_REQUEST"),
    ({"data": "A" * 90_000}, "VALUE_TOO_LARGE"),
    ({"sessionId": "AAAAAAAAAAAAAAAAAAAAAA"}, "SESSION_LOST"),
    ({"sessionId": "short"}, "INVALID_REQUEST"),
]


@pytest.mark.parametrize(("part", "code"), WRONG)
def test_what_is_out_of_bounds_is_refused_and_nothing_is_written(cluster, part, code):
    client = SessionClient(cluster)
    offset = cluster.image.offset
    body = {"kind": "lock", "name": "n", "id": "i", "sessionId": client.session_id, **part}
    refused(cluster, "/entries", body, code)
    assert cluster.image.offset == offset
