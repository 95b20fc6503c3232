"""Changes of one client go together, and each has its own id, tries and outcome."""

import asyncio
from typing import Any

import msgspec
import pytest

from coordination.backends.quorum.joining import IN_FLIGHT_MAX, SHORT_BYTES
from coordination.errors import KeyExists, OutcomeUnknown
from metadata.errors import ErrorCode
from metadata.messages.coordination import CommitReply, CommitRequest, KeyOperation
from metadata.messages.joined_changes import (
    CHANGES_PATH,
    ChangeOutcome,
    JoinedChangesReply,
    JoinedChangesRequest,
)
from metadata.messages.wire import MSGPACK, decode
from runtime.http.requests import Reply
from tests.unit.coordination.quorum.scripted_controllers import (
    LATENCY_S,
    LOST,
    A,
    AskedOnce,
    B,
    ScriptedControllers,
    ok,
    page,
    refusal,
    requests_to,
)
from tests.unit.coordination.virtual_loop import virtual

CODE = ErrorCode


async def put(requests: Any, key: str, size: int = 1) -> int:
    """Put a key, and return the revision."""
    message = CommitRequest((KeyOperation("put", key, bytes(size)),))
    made = await requests.ask(
        "POST", "/commit", CommitReply, message, request_id=requests.request_ids.of(None)
    )
    return int(made.revision)


def done(revision: int) -> Reply:
    return ok(CommitReply(revision=revision, applied=(True,)))


def together(*replies: Reply) -> Reply:
    """One answer for changes that went together."""
    outcomes = [ChangeOutcome(each.status, None, msgspec.Raw(each.body)) for each in replies]
    return ok(JoinedChangesReply(tuple(outcomes)))


def keys(asked: AskedOnce) -> list[str]:
    """The keys that a request puts."""
    if asked.request.path != CHANGES_PATH:
        bodies = [asked.request.body]
    else:
        changes = decode(JoinedChangesRequest, asked.request.body, MSGPACK).changes
        assert {(each.method, each.path) for each in changes} == {("POST", "/commit")}
        bodies = [bytes(each.body) for each in changes]
    return [decode(CommitRequest, body, MSGPACK).operations[0].key for body in bodies]


def ids(asked: AskedOnce) -> list[str | None]:
    return [
        each.request_id
        for each in decode(JoinedChangesRequest, asked.request.body, MSGPACK).changes
    ]


@virtual
async def test_a_change_that_is_made_alone_goes_alone_and_at_once() -> None:
    controllers = ScriptedControllers({A: [done(7)]})
    requests = requests_to(controllers)
    begun = requests.clock.monotonic()
    assert await put(requests, "k") == 7
    assert requests.clock.monotonic() - begun == pytest.approx(LATENCY_S)
    assert [asked.request.path for asked in controllers.asked] == ["/commit"]
    assert controllers.asked[0].id


@virtual
async def test_changes_of_one_pass_go_together_and_each_has_its_own_outcome() -> None:
    there = refusal(CODE.KEY_EXISTS, operation="0")
    busy = refusal(CODE.THROTTLED, after_ms=200)
    controllers = ScriptedControllers({A: [together(done(7), there, busy), done(9)]})
    requests = requests_to(controllers)
    made = await asyncio.gather(*(put(requests, key) for key in "abc"), return_exceptions=True)
    assert made[0] == 7
    assert isinstance(made[1], KeyExists)
    assert made[2] == 9, "only what was refused for now is tried again"
    first, again = controllers.asked
    assert (keys(first), keys(again)) == (["a", "b", "c"], ["c"])
    assert len(set(ids(first))) == 3
    assert again.id == ids(first)[2]


@virtual
async def test_those_that_come_while_requests_are_under_way_wait_and_go_together() -> None:
    controllers = ScriptedControllers({A: [done(1), done(2), together(done(3), done(4))]})
    requests = requests_to(controllers)
    making = []
    for key in "abcd":
        making.append(asyncio.create_task(put(requests, key)))
        await asyncio.sleep(LATENCY_S / 8)
    assert await asyncio.gather(*making) == [1, 2, 3, 4]
    assert [keys(asked) for asked in controllers.asked] == [["a"], ["b"], ["c", "d"]]
    assert controllers.asked[2].at_s == pytest.approx(controllers.asked[0].at_s + LATENCY_S)


@virtual
async def test_many_are_divided_among_the_requests_that_may_go() -> None:
    controllers = ScriptedControllers({A: [None]})
    requests = requests_to(controllers)
    making = [asyncio.create_task(put(requests, f"{n}")) for n in range(100)]
    await asyncio.sleep(0.1)
    assert [len(keys(asked)) for asked in controllers.asked] == [50] * IN_FLIGHT_MAX
    for each in making:
        each.cancel()
    await asyncio.gather(*making, return_exceptions=True)


@virtual
async def test_a_long_change_goes_alone() -> None:
    controllers = ScriptedControllers({A: [done(7)]})
    requests = requests_to(controllers)
    await asyncio.gather(*(put(requests, key, SHORT_BYTES) for key in "ab"))
    assert [asked.request.path for asked in controllers.asked] == ["/commit"] * 2


LOSSES = {
    "is lost": LOST,
    "is another one's": page(200),
    "has one outcome too few": together(done(7)),
}


@pytest.mark.parametrize("answer", LOSSES.values(), ids=LOSSES.keys())
@virtual
async def test_the_same_ids_find_out_what_came_of_changes_whose_answer(answer: Reply) -> None:
    controllers = ScriptedControllers({A: [answer], B: [together(done(7), done(8))]})
    requests = requests_to(controllers, A, B)
    assert await asyncio.gather(put(requests, "a"), put(requests, "b")) == [7, 8]
    first, again = controllers.asked
    assert ids(first) == ids(again)


@virtual
async def test_changes_that_nobody_answers_end_in_time_and_in_doubt() -> None:
    controllers = ScriptedControllers({A: [None], B: [None]})
    requests = requests_to(controllers, A, B, timeout_s=3.0)
    begun = requests.clock.monotonic()
    made = await asyncio.gather(*(put(requests, f"{n}") for n in range(40)), return_exceptions=True)
    assert {type(each) for each in made} == {OutcomeUnknown}
    assert requests.clock.monotonic() - begun == pytest.approx(3.0, abs=0.1)


@virtual
async def test_all_of_a_request_follow_the_leader_that_its_answer_names() -> None:
    elsewhere = refusal(CODE.NOT_CONTROLLER, leader=B)
    controllers = ScriptedControllers({A: [elsewhere], B: [together(done(7), done(8))]})
    requests = requests_to(controllers, A, B)
    assert await asyncio.gather(put(requests, "a"), put(requests, "b")) == [7, 8]
    assert controllers.urls == [A, B]
