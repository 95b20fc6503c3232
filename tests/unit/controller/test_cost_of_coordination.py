"""A request of coordination costs the same with ten sessions and ten thousand, few keys and many.

The test counts operations and not time (`counted`), as `test_cost_of_requests` does. Each session
holds a lock, and for each one there are two watches: of a key, and of a prefix that is its own.

Rule: with a thousand times the sessions, or a hundred times the keys, a request may cost half as
much again, and not more.
"""

from collections.abc import Callable
from typing import Any

import pytest

from metadata.records import EntryKind, EntryRecord, KeyRecord, SessionRecord
from metadata.uuids import uuid_text
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.counted import Counting, check
from tests.unit.controller.managers.coordination.coordination_clients import (
    BASE,
    SessionClient,
    ask,
    commit,
    entries,
    operation,
)

FEW_SESSIONS, MANY_SESSIONS = 10, 10_000
FEW_KEYS, MANY_KEYS = 100, 10_000
WATCHES = 10
"""Keys or prefixes that each waiting request is about."""
WAIT_MS = 60_000


class CoordinationStage:
    """A leader with sessions, locks, keys and waiting watches."""

    def __init__(self, sessions: int, keys: int) -> None:
        self.cluster = Cluster(nodes=1, checkpoint_bytes=1 << 40)
        self._used = 0
        ids = [number.to_bytes(16, "big") for number in range(1, sessions + 1)]
        for start in range(0, sessions, 1_000):
            some = ids[start : start + 1_000]
            self.cluster.write(*(SessionRecord(i, 600_000, "User:alice", "c", 1) for i in some))
            self.cluster.write(*map(_lock, some))
        for start in range(0, keys, 1_000):
            some_keys = range(start, min(start + 1_000, keys))
            self.cluster.write(*(KeyRecord(f"key/{n:06}", b"v", 1, 1, 1) for n in some_keys))
        self.any_session = uuid_text(ids[sessions // 2])
        self.own = SessionClient(self.cluster, "own", 600_000)
        self.other = SessionClient(self.cluster, "other", 600_000)
        for number in range(sessions // WATCHES):
            turn = range(number * WATCHES, (number + 1) * WATCHES)
            self.watch(*({"key": f"key/{key % keys:06}"} for key in turn))
            self.watch(*({"prefix": f"own-prefix-{key}/"} for key in turn))
        commit(self.cluster, operation("put", "counted", b""))

    def watch(self, *scopes: dict[str, Any]) -> list[Any]:
        """Wait for news behind the present state; returns the list for the answer."""
        after = self.cluster.image.offset - 1
        body = {"scopes": [{**scope, "after": after} for scope in scopes], "waitMs": WAIT_MS}
        return self.cluster.send("POST", f"{BASE}/watch", body)

    def name(self) -> str:
        """A name that nobody has used."""
        self._used += 1
        return f"new-{self._used}"

    def get(self, path: str, **query: str) -> Any:
        return ask(self.cluster, "GET", path, query=query)

    def expire(self, client: SessionClient) -> None:
        """Let the leader find out that a session's client is silent."""
        contacts = self.cluster.leader._leader.session_contacts
        (key,) = [k for k in contacts._contacts if uuid_text(k) == client.session_id]
        contacts._contacts[key].deadline = 0.0
        contacts._deadlines.put(key)


def _lock(session_id: bytes) -> EntryRecord:
    name = f"lock-{int.from_bytes(session_id)}"
    return EntryRecord(int(EntryKind.LOCK), name, "e", session_id, b"", False, 1, 1, 1)


@pytest.fixture(scope="module")
def few() -> CoordinationStage:
    return CoordinationStage(FEW_SESSIONS, FEW_KEYS)


@pytest.fixture(scope="module")
def many_sessions() -> CoordinationStage:
    return CoordinationStage(MANY_SESSIONS, FEW_KEYS)


@pytest.fixture(scope="module")
def many_keys() -> CoordinationStage:
    return CoordinationStage(FEW_SESSIONS, MANY_KEYS)


# -- what is asked: each prepares what it needs, and returns what is counted ---------------------


def open_session(stage: CoordinationStage) -> Counting:
    return lambda: SessionClient(stage.cluster, "new", 600_000)


def renew(stage: CoordinationStage) -> Counting:
    body = {"sessionId": stage.any_session}
    return lambda: ask(stage.cluster, "POST", "/sessions/renew", body)


def end_with_a_successor(stage: CoordinationStage) -> Counting:
    client, name = SessionClient(stage.cluster), stage.name()
    client.enter("election", name, "first")
    stage.own.enter("election", name, "next")
    return client.end


def expire(stage: CoordinationStage) -> Counting:
    client = SessionClient(stage.cluster)
    client.enter("group", stage.name(), "m")
    stage.expire(client)
    sessions = stage.cluster.image.coordination.sessions
    before = len(sessions)
    look = stage.cluster.leader._leader.session_expiry._look

    def end() -> None:
        stage.cluster.processes[1].run(look)
        stage.cluster.run_until(
            lambda: len(stage.cluster.image.coordination.sessions) == before - 1
        )

    return end


def enter(stage: CoordinationStage) -> Counting:
    return lambda: stage.own.enter("lock", stage.name(), "e")


def wait(stage: CoordinationStage) -> Counting:
    name = stage.name()
    stage.own.enter("lock", name, "e")
    return lambda: stage.other.enter("lock", name, "f")


def hand_over(stage: CoordinationStage) -> Counting:
    name = stage.name()
    stage.own.enter("lock", name, "e")
    stage.other.enter("lock", name, "f")
    return lambda: stage.own.leave("lock", name, "e")


def change_entry(stage: CoordinationStage) -> Counting:
    name = stage.name()
    stage.own.enter("group", name, "e")
    return lambda: stage.own.change("group", name, "e", b"data")


def put(stage: CoordinationStage) -> Counting:
    return lambda: commit(stage.cluster, operation("put", stage.name(), b"v"))


def update(stage: CoordinationStage) -> Counting:
    return lambda: commit(stage.cluster, operation("update", "counted", b"v"))


def delete(stage: CoordinationStage) -> Counting:
    name = stage.name()
    commit(stage.cluster, operation("put", name, b"v"))
    return lambda: commit(stage.cluster, operation("delete", name))


def fenced(stage: CoordinationStage) -> Counting:
    name = stage.name()
    token = stage.own.enter("lock", name, "e")["token"]
    fences = [{"kind": "lock", "name": name, "token": token}]
    return lambda: commit(stage.cluster, operation("update", "counted", b"v"), fences=fences)


def watch_is_woken(**scope: str) -> Callable[[CoordinationStage], Counting]:
    def prepare(stage: CoordinationStage) -> Counting:
        answers = stage.watch(scope)
        assert not answers

        def wake() -> None:
            commit(stage.cluster, operation("update", "counted", b"v"))
            stage.cluster.run_until(lambda: bool(answers))

        return wake

    return prepare


def watch_of_a_queue_is_woken(stage: CoordinationStage) -> Counting:
    name = stage.name()
    answers = stage.watch({"kind": "election", "name": name})

    def wake() -> None:
        stage.own.enter("election", name, "e")
        stage.cluster.run_until(lambda: bool(answers))

    return wake


def watch_has_news(stage: CoordinationStage) -> Counting:
    after = stage.cluster.image.offset - 1
    commit(stage.cluster, operation("update", "counted", b"v"))
    scopes = [{"key": "counted", "after": after}, {"prefix": "cou", "after": after}]
    return lambda: ask(stage.cluster, "POST", "/watch", {"scopes": scopes})


def watch_begins(stage: CoordinationStage) -> Counting:
    scopes = [{"key": "counted"}, {"prefix": "counted"}, {"kind": "lock", "name": "lock-1"}]
    return lambda: ask(stage.cluster, "POST", "/watch", {"scopes": scopes})


ASKED: dict[str, Callable[[CoordinationStage], Counting]] = {
    "open a session": open_session,
    "renew a session": renew,
    "end a session that leads": end_with_a_successor,
    "a session expires": expire,
    "enter": enter,
    "wait in a queue": wait,
    "hand over": hand_over,
    "change an entry": change_entry,
    "put a key": put,
    "update a key": update,
    "delete a key": delete,
    "a fenced update": fenced,
    "a watch of a key is woken": watch_is_woken(key="counted"),
    "a watch of a prefix is woken": watch_is_woken(prefix="count"),
    "a watch of a queue is woken": watch_of_a_queue_is_woken,
    "a watch has news": watch_has_news,
    "a watch begins": watch_begins,
    "a key": lambda stage: lambda: stage.get("/key", key="counted"),
    "keys": lambda stage: lambda: stage.get("/keys", prefix="key/", limit="5"),
    "sessions": lambda stage: lambda: stage.get("/sessions", limit="5"),
    "a queue": lambda stage: lambda: entries(stage.cluster, "lock", "lock-1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ASKED)
def test_a_request_costs_the_same_with_a_thousand_times_the_sessions(
    few: CoordinationStage,
    many_sessions: CoordinationStage,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    check(what, ASKED[what], few, many_sessions, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("what", ASKED)
def test_a_request_costs_the_same_with_very_many_keys(
    few: CoordinationStage,
    many_keys: CoordinationStage,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    check(what, ASKED[what], few, many_keys, monkeypatch)
