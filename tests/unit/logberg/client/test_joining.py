"""The client joins changes that are made at the same time; each keeps its id and its outcome."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.joining import FEW, IN_FLIGHT_MAX
from logberg.client.waiting_change import is_short
from tests.unit.logberg.client.changing_controller import ChangingController, RunningControllers
from tests.unit.runtime.http.http_kit import settle


@contextlib.asynccontextmanager
async def one(deadline_s: float = 10.0) -> AsyncIterator[tuple[ChangingController, LogbergClient]]:
    controller = ChangingController()
    async with (
        RunningControllers(controller) as urls,
        LogbergClient(urls, None, deadline_s) as client,
    ):
        yield controller, client


def create(client: LogbergClient, name: str, **more: Any) -> "asyncio.Task[Any]":
    return asyncio.create_task(client.change("POST", "/v1/topics", dict, {"name": name}, **more))


async def outcomes(*tasks: "asyncio.Task[Any]") -> list[str]:
    """What each caller got: the name in the reply, or the error's code."""
    found = await asyncio.gather(*tasks, return_exceptions=True)
    return [
        each.code if isinstance(each, ClientError) else type(each).__name__
        if isinstance(each, BaseException) else each["name"]
        for each in found
    ]  # fmt: skip


async def test_a_lone_change_goes_alone_and_those_of_one_pass_go_together() -> None:
    async with one() as (controller, client):
        assert await outcomes(create(client, "a")) == ["a"]
        names = [f"n{number}" for number in range(FEW)]
        assert await outcomes(*(create(client, name) for name in names)) == names
    assert controller.requests == [["a"], names]
    assert all(len(ids) == 1 for ids in controller.ids.values())


async def test_many_changes_are_divided_among_the_requests_that_may_go() -> None:
    names = [f"n{number}" for number in range(10 * FEW)]
    async with one() as (controller, client):
        assert await outcomes(*(create(client, name) for name in names)) == names
    assert sorted(map(len, controller.requests)) == [len(names) // IN_FLIGHT_MAX] * IN_FLIGHT_MAX


async def test_changes_that_come_while_requests_are_under_way_go_together() -> None:
    async with one() as (controller, client):
        controller.held = []
        tasks = []
        for number in range(IN_FLIGHT_MAX):
            tasks.append(create(client, f"lone{number}"))
            await settle(lambda n=number: len(controller.requests) == n + 1)
        for number in range(5):
            tasks.append(create(client, f"later{number}"))
            await asyncio.sleep(0.001)
        assert len(controller.requests) == IN_FLIGHT_MAX
        controller.let_go()
        await outcomes(*tasks)
    assert controller.requests[IN_FLIGHT_MAX:] == [[f"later{number}" for number in range(5)]]


async def test_a_request_that_takes_long_holds_no_others_back() -> None:
    async with one() as (controller, client):
        controller.held = []
        tasks = []
        for number in range(IN_FLIGHT_MAX):
            tasks.append(create(client, f"long{number}"))
            await settle(lambda n=number: len(controller.requests) == n + 1)
        tasks.append(create(client, "next"))
        await settle(lambda: ["next"] in controller.requests)
        controller.let_go()
        assert (await outcomes(*tasks))[-1] == "next"


async def test_each_caller_gets_its_own_outcome() -> None:
    async with one() as (_, client):
        names = ["a", "refused", "b", "refused too"]
        found = await outcomes(*(create(client, name) for name in names))
    assert found == ["a", "TOPIC_ALREADY_EXISTS", "b", "TOPIC_ALREADY_EXISTS"]
    assert not client.in_doubt


async def test_a_caller_that_is_cancelled_harms_nobody() -> None:
    async with one() as (controller, client):
        controller.held = []
        under_way = [create(client, name) for name in ("a", "b", "c")]
        await settle(lambda: controller.requests)
        others = [create(client, "x")]
        await settle(lambda: len(controller.requests) == IN_FLIGHT_MAX)
        waiting = [create(client, name) for name in ("d", "e")]
        await asyncio.sleep(0.01)
        under_way[1].cancel()
        waiting[0].cancel()
        await asyncio.sleep(0)
        controller.let_go()
        found = await outcomes(*under_way, *others, *waiting)
    assert found == ["a", "CancelledError", "c", "x", "CancelledError", "e"]
    assert controller.made["b"] == 1
    assert "d" not in controller.made, "a change whose caller has gone before it was sent"


async def test_a_controller_that_does_not_know_the_route_gets_them_one_by_one() -> None:
    async with one() as (controller, client):
        controller.knows_route = False
        for _ in range(2):
            await outcomes(*(create(client, name) for name in ("a", "b", "c")))
    assert controller.requests[0] == ["?"]
    assert sorted(controller.requests[1:]) == [["a"], ["a"], ["b"], ["b"], ["c"], ["c"]]


async def test_a_request_that_is_too_large_is_divided() -> None:
    names = [f"n{number}" for number in range(20)]
    async with one() as (controller, client):
        controller.takes_at_most = 3
        assert await outcomes(*(create(client, name) for name in names)) == names
    assert set(controller.made.values()) == {1}
    assert min(map(len, controller.requests)) > 1, "no further than need be"


async def test_one_change_that_is_too_large_alone_has_that_error() -> None:
    async with one() as (controller, client):
        controller.first["big"] = 413, {"code": "BODY_TOO_LARGE", "message": "send less"}
        assert await outcomes(create(client, "big"), create(client, "small")) == [
            "BODY_TOO_LARGE",
            "small",
        ]


_ERRORS = {
    "THROTTLED": (429, {"code": "THROTTLED", "message": "later", "retryAfterMs": 30}),
    "REQUEST_TIMED_OUT": (503, {"code": "REQUEST_TIMED_OUT", "message": "not yet"}),
    "NO_QUORUM": (503, {"code": "NO_QUORUM", "message": "an election"}),
    "NOT_CONTROLLER": (421, {"code": "NOT_CONTROLLER", "message": "deposed"}),
}


@pytest.mark.parametrize("code", _ERRORS)
async def test_a_change_that_may_be_tried_again_is_with_its_id_and_the_others_are_done(
    code: str,
) -> None:
    async with one() as (controller, client):
        controller.first["again"] = _ERRORS[code]
        tasks = [create(client, name) for name in ("a", "again", "b")]
        assert await outcomes(tasks[0], tasks[2]) == ["a", "b"]
        assert await outcomes(tasks[1]) == ["again"]
    assert controller.requests == [["a", "again", "b"], ["again"]]
    assert len(controller.ids["again"]) == 1
    assert controller.made == Counter(["a", "again", "b"])


async def test_a_slow_change_is_asked_for_again_where_the_others_were_made() -> None:
    serving, other = ChangingController(), ChangingController()
    async with RunningControllers(serving, other) as urls, LogbergClient(urls) as client:
        serving.first["slow"] = _ERRORS["REQUEST_TIMED_OUT"]
        assert await outcomes(create(client, "a"), create(client, "slow")) == ["a", "slow"]
    assert (serving.requests, other.requests) == ([["a", "slow"], ["slow"]], [])


async def test_a_change_for_which_there_is_no_room_is_not_in_doubt_and_ends_with_the_client() -> (
    None
):
    async with one() as (controller, client):
        later = {"code": "THROTTLED", "message": "later", "retryAfterMs": 5_000}
        controller.first["later"] = 429, later
        tasks = [create(client, name) for name in ("a", "later")]
        assert await outcomes(tasks[0]) == ["a"]
        assert not client.in_doubt
        await client.__aexit__(None, None, None)
        async with asyncio.timeout(2):
            assert await outcomes(tasks[1]) == ["NO_ANSWER"]


async def test_what_failed_before_an_answer_does_not_explain_a_later_failure() -> None:
    controller = ChangingController()
    running = RunningControllers(controller)
    async with running as urls, LogbergClient(urls, None, 0.5) as client:
        controller.first["a"] = _ERRORS["NO_QUORUM"]
        assert await outcomes(create(client, "a")) == ["a"]
        await running.servers[0].stop()
        assert await outcomes(create(client, "b")) == ["NO_ANSWER"]


async def test_the_client_follows_the_leader_with_all_of_them_and_remembers_it() -> None:
    standby, leader = ChangingController(), ChangingController()
    async with RunningControllers(standby, leader) as urls, LogbergClient(urls) as client:
        standby.leader = urls[1]
        for _ in range(2):
            assert await outcomes(create(client, "a"), create(client, "b")) == ["a", "b"]
    assert standby.requests == [["a", "b"]]
    assert leader.requests == [["a", "b"]] * 2


async def test_after_a_failover_midway_the_ids_are_the_same() -> None:
    """The first leader makes the changes and dies before its answer."""
    old, new = ChangingController(), ChangingController()
    running = RunningControllers(old, new)
    async with running as urls, LogbergClient(urls) as client:
        old.held = []
        tasks = [create(client, name) for name in ("a", "b", "c")]
        await settle(lambda: old.held)
        assert len(client.in_doubt) == 3
        await running.servers[0].stop()
        assert await outcomes(*tasks) == ["a", "b", "c"]
    assert old.ids == new.ids
    assert not client.in_doubt


async def test_each_outcome_that_is_unknown_names_its_own_request_id() -> None:
    async with one(deadline_s=0.3) as (controller, client):
        controller.held = []
        tasks = [create(client, name) for name in ("a", "b")]
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(each, ClientError) and each.code for each in found] == [
            "REQUEST_TIMED_OUT"
        ] * 2
        said = [each.reply.request_id for each in found if isinstance(each, ClientError)]
        assert said == [min(controller.ids["a"]), min(controller.ids["b"])]
        assert client.in_doubt == set(said)
        controller.held = None
        again = create(client, "a", request_id=said[0])
        assert await outcomes(again) == ["a"]
        assert client.in_doubt == {said[1]}
        assert controller.made["a"] == 1


async def test_a_change_that_waited_too_long_was_not_made_and_says_so() -> None:
    async with one(deadline_s=0.2) as (controller, client):
        controller.held = []
        tasks = [create(client, "a")]
        await settle(lambda: controller.requests)
        tasks += [create(client, "b")]
        await settle(lambda: len(controller.requests) == 2)
        tasks += [create(client, "c")]
        await asyncio.sleep(0)
        found = await outcomes(*tasks)
        assert found == ["REQUEST_TIMED_OUT", "REQUEST_TIMED_OUT", "NO_ANSWER"]
        assert "c" not in controller.ids


async def test_without_any_controller_each_is_told_and_a_later_one_tries_again() -> None:
    controller = ChangingController()
    running = RunningControllers(controller)
    async with running as urls:
        pass
    async with LogbergClient(urls, None, 0.3) as client:
        assert await outcomes(create(client, "a"), create(client, "b")) == ["NO_ANSWER"] * 2
        assert not client.in_doubt
        assert await outcomes(create(client, "c")) == ["NO_ANSWER"]


async def test_a_client_that_is_closed_answers_all() -> None:
    async with one() as (controller, client):
        controller.held = []
        tasks = [create(client, name) for name in ("a", "b")]
        await settle(lambda: controller.requests)
        tasks += [create(client, name) for name in ("c", "d")]
        await settle(lambda: len(controller.requests) == 2)
        tasks.append(create(client, "e"))
        await asyncio.sleep(0)
        await client.__aexit__(None, None, None)
        assert await outcomes(*tasks) == ["REQUEST_TIMED_OUT"] * 4 + ["NO_ANSWER"]
        controller.let_go()


async def test_a_reply_with_too_few_outcomes_leaves_all_unknown() -> None:
    async with one() as (controller, client):
        controller._joined = lambda _changes: (200, {"outcomes": []})
        found = await outcomes(create(client, "a"), create(client, "b"))
        assert found == ["REQUEST_TIMED_OUT"] * 2
        assert len(client.in_doubt) == 2


@pytest.mark.parametrize(
    ("method", "path", "joined"),
    [
        ("POST", "/v1/topics", True),
        ("DELETE", "/v1/topics/a", True),
        ("PATCH", "/v1/configs", True),
        ("PATCH", "/v1/configs/topic/a", True),
        ("POST", "/v1/partitions", True),
        ("POST", "/v1/acls", True),
        ("DELETE", "/v1/acls", True),
        ("POST", "/v1/quotas", True),
        ("POST", "/v1/users/scram", True),
        ("POST", "/v1/tokens", True),
        ("POST", "/v1/tokens/abc/renew", True),
        ("POST", "/v1/producer-ids", True),
        ("DELETE", "/v1/topics", False),
        ("POST", "/v1/apply", False),
        ("POST", "/v1/reassignments", False),
        ("POST", "/v1/partitions/elect", False),
        ("POST", "/v1/features", False),
        ("DELETE", "/v1/brokers/1", False),
        ("POST", "/v1/of-a-later-release", False),
    ],
)
async def test_only_short_changes_are_joined(method: str, path: str, joined: bool) -> None:
    assert is_short(method, path, b"{}") is joined
    assert not is_short(method, path, b" " * 100_000)


async def test_dry_runs_go_alone() -> None:
    async with one() as (controller, client):
        bodies = [{"name": name, "dryRun": True} for name in ("a", "b")]
        await asyncio.gather(*(client.change("POST", "/v1/topics", dict, body) for body in bodies))
    assert sorted(controller.requests) == [["a"], ["b"]]
