"""A client notices wrong answers, and the time of a kill ends with the right answer."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from logberg.client.access import Access
from metadata.messages.quorum import QuorumMember, QuorumReply
from tests.kills.killing import _all_hold
from tests.kills.load import Load, LoadError


def reply(offset: int, epoch: int, error: Any = None) -> dict[str, Any]:
    return {"offset": offset, "epoch": epoch, "topics": [{"name": "t", "error": error}]}


def told(answer: dict[str, Any] | None) -> Any:
    return Told(answer)


class Told:
    """A client that sends nothing and returns given answers."""

    def __init__(self, answer: dict[str, Any] | None) -> None:
        self._answer = answer

    async def ask(self, *_: Any, **__: Any) -> dict[str, Any] | None:
        return self._answer


def load() -> Load:
    return Load(["https://127.0.0.1:1"], Access(), 1)


async def test_the_clock_stops_at_the_first_answer_of_a_later_epoch() -> None:
    clients = load()
    waiting = asyncio.create_task(clients.commit_after(4))
    await asyncio.sleep(0)
    # What the dead leader said still arrives; so does what an earlier one had answered.
    clients._told(reply(10, 4), "a")
    clients._told(reply(3, 2), "b")
    await asyncio.sleep(0)
    assert not waiting.done()
    clients._told(reply(12, 6), "c")
    assert (await waiting)[1] == 6
    assert [one.offset for one in clients.acknowledged] == [10, 3, 12]


def test_a_refusal_of_what_nobody_else_can_have_done_is_a_failure() -> None:
    with pytest.raises(LoadError, match="executed twice, or lost"):
        load()._told(reply(1, 1, {"code": "TOPIC_ALREADY_EXISTS"}), "a")


async def test_what_was_told_must_be_read_back() -> None:
    clients = load()
    clients._told(reply(10, 1), "a")
    await clients._see(told({"offset": 10}), "t")
    with pytest.raises(LoadError, match="is not there"):
        await clients._see(told(None), "t")
    with pytest.raises(LoadError, match="saw offset 9 after 10"):
        await clients._see(told({"offset": 9}), "t")


async def test_a_read_is_not_older_than_the_newest_that_was_told() -> None:
    clients = load()
    clients._told(reply(10, 1), "a")
    # An answer that was remembered comes late: it moves nothing back.
    clients._told(reply(4, 1), "b")
    with pytest.raises(LoadError, match="saw offset 8 after 10"):
        await clients._see(told({"offset": 8}), "t")


MEMBERS = tuple(
    QuorumMember(n, "directory", match_index=match) for n, match in ((1, 0), (2, 7), (3, 9))
)
LEADERS = QuorumReply("c", 1, "directory", "leader", 1, 1, None, 9, 9, 9, 9, 9, 0, MEMBERS)


def test_caught_up_is_every_voter_at_what_was_committed_before() -> None:
    assert _all_hold(LEADERS, 7, 3)
    assert not _all_hold(LEADERS, 8, 3)
    assert not _all_hold(replace(LEADERS, role="follower"), 7, 3)
    assert not _all_hold(replace(LEADERS, durable_index=6), 7, 3)
    observing = tuple(replace(member, is_voter=member.node_id != 3) for member in MEMBERS)
    assert not _all_hold(replace(LEADERS, members=observing), 7, 3)
