"""`logberg quorum status` shows the leader's view, or says whose it is."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from metadata.messages.quorum import QuorumMember, QuorumReply
from tests.unit.logberg.edge import run_whole
from tests.unit.logberg.listener import Listener

LAST = 80


class Controllers:
    """Three that answer `GET /v1/quorum` as real ones do: only a leader knows of the others."""

    def __init__(self) -> None:
        self.listeners = {n: Listener() for n in (1, 2, 3)}
        self.leader: int | None = None
        for n, listener in self.listeners.items():
            listener.answer = self._answering(n)

    def _answering(self, n: int) -> Callable[[str, str], tuple[str, bytes]]:
        return lambda _method, _path: ("200 OK", msgspec.json.encode(self._view(n)))

    def _view(self, n: int) -> QuorumReply:
        leads = n == self.leader
        members = tuple(
            QuorumMember(
                m,
                f"directory-{m}",
                match_index=LAST if leads and m != n else 0,
                last_contact_ms=7 if leads and m != n else None,
            )
            for m in self.listeners
        )
        return QuorumReply(
            "cluster",
            n,
            f"directory-{n}",
            "leader" if leads else "follower",
            self.leader,
            4,
            None if self.leader is None else self.listeners[self.leader].url,
            *(LAST, LAST, LAST, LAST, LAST),
            1024,
            members,
        )

    def urls(self, *nodes: int) -> str:
        return ",".join(self.listeners[n].url for n in nodes)


@pytest.fixture
def controllers() -> Iterator[Controllers]:
    made = Controllers()
    yield made
    for listener in made.listeners.values():
        listener.close()


def status(controllers: Controllers, *nodes: int, more: tuple[str, ...] = ()) -> Any:
    return run_whole(
        "quorum", "status", "--controllers", controllers.urls(*nodes), "--timeout", "2", *more
    )


def rows(printed: str) -> dict[str, list[str]]:
    """The member table, by node."""
    lines = printed.split("\n\n", 1)[1].splitlines()[1:]
    return {line.split()[0]: line.split() for line in lines}


@pytest.mark.parametrize("asked", [(1, 2, 3), (1, 3), (3,), (2,)])
def test_the_leader_is_asked_whoever_was_named(controllers: Controllers, asked: tuple[int]) -> None:
    controllers.leader = 2
    said = status(controllers, *asked)
    assert said.code == 0, said.err
    assert "node 2, the leader" in said.out
    shown = rows(said.out)
    assert shown["1"][-5:] == ["80", "0", "7", "ms", "ago"]
    assert shown["2"][-3:] == ["80", "0", "itself"]
    as_json = status(controllers, *asked, more=("-o", "json"))
    assert json.loads(as_json.out)["nodeId"] == 2


def test_a_view_that_is_not_the_leaders_says_so_and_shows_no_lag(controllers: Controllers) -> None:
    controllers.leader = 2
    said = status(controllers, 1, 2, 3, more=("--node", "1"))
    assert "node 1 (follower), which does not know how far the others are" in said.out
    assert rows(said.out)["3"][-3:] == ["-", "-", "-"]
    assert rows(said.out)["1"][-3:] == ["80", "0", "itself"]


def test_without_a_leader_it_says_whose_view_it_is(controllers: Controllers) -> None:
    said = status(controllers, 1, 2, 3)
    assert said.code == 0
    assert "none" in said.out
    assert "which does not know how far the others are" in said.out
    assert "never" not in said.out


def test_a_leader_that_does_not_answer_leaves_a_followers_view(controllers: Controllers) -> None:
    controllers.leader = 2
    controllers.listeners[2].answer = lambda _method, _path: None
    said = status(controllers, 1)
    assert "node 1 (follower)" in said.out


def test_a_node_that_does_not_answer_is_named(controllers: Controllers) -> None:
    said = status(controllers, 1, 3, more=("--node", "2"))
    assert said.code == 1
    assert "controller 2 does not answer; those that do: 1, 3" in said.err
