"""How a client asks controllers that lead, don't lead, hang, refuse, or lose replies."""

import asyncio
from typing import Any

import pytest

from coordination.errors import (
    AuthFailed,
    CoordinationError,
    KeyExists,
    OutcomeUnknown,
    SessionLost,
    Unavailable,
)
from metadata.errors import ErrorCode
from metadata.messages.coordination import (
    BreakGrantReply,
    BreakGrantRequest,
    RenewSessionReply,
    RenewSessionRequest,
)
from metadata.uuids import parse_uuid, uuid7_time_ms
from tests.unit.coordination.quorum.scripted_controllers import (
    LATENCY_S,
    LOST,
    REFUSED,
    A,
    Answer,
    B,
    C,
    ScriptedControllers,
    ok,
    page,
    refusal,
    requests_to,
)
from tests.unit.coordination.virtual_loop import virtual

DONE = ok(BreakGrantReply(revision=7, broken=True))
CODE = ErrorCode
NOT_LEADER = refusal(CODE.NOT_CONTROLLER)
NO_QUORUM = refusal(CODE.NO_QUORUM, after_ms=1000)


async def change(requests: Any) -> BreakGrantReply:
    message = BreakGrantRequest("lock", "l")
    return await requests.ask(
        "POST", "/x", BreakGrantReply, message, request_id=requests.request_ids.of(None)
    )


async def read(requests: Any) -> BreakGrantReply:
    return await requests.ask("GET", "/x", BreakGrantReply)


ANSWERED: dict[str, tuple[dict[str, list[Answer]], list[str]]] = {
    "the first one leads": ({A: [DONE]}, [A]),
    "it names the leader": ({A: [refusal(CODE.NOT_CONTROLLER, leader=B)], B: [DONE]}, [A, B]),
    "it names a leader that we didn't know": (
        {A: [refusal(CODE.NOT_CONTROLLER, leader=C)], B: [REFUSED], C: [DONE]},
        [A, C],
    ),
    "it names itself": ({A: [refusal(CODE.NOT_CONTROLLER, leader=A)], B: [DONE]}, [A, B]),
    "it names a leader on another scheme": (
        {A: [refusal(CODE.NOT_CONTROLLER, leader="https://b:1")], B: [DONE]},
        [A, B],
    ),
    "nobody leads for a while": ({A: [NOT_LEADER, DONE], B: [NOT_LEADER]}, [A, B, A]),
    "one isn't there": ({A: [REFUSED], B: [DONE]}, [A, B]),
    "one hangs up": ({A: [LOST], B: [DONE]}, [A, B]),
    "one hangs": ({A: [None], B: [DONE]}, [A, B]),
    "one is cut off from the others": ({A: [NO_QUORUM], B: [DONE]}, [A, B]),
    "one has diverged": ({A: [refusal(CODE.STATE_DIVERGED)], B: [DONE]}, [A, B]),
    "one stops": ({A: [refusal(CODE.SHUTTING_DOWN)], B: [DONE]}, [A, B]),
    "one is busy, and the same is asked again": (
        {A: [refusal(CODE.THROTTLED, after_ms=200), DONE], B: [NOT_LEADER]},
        [A, A],
    ),
    "the time was over in the queue": (
        {A: [refusal(CODE.REQUEST_TIMED_OUT, after_ms=1000)], B: [DONE]},
        [A, B],
    ),
    "a gateway has no one behind it": ({A: [page(502)], B: [DONE]}, [A, B]),
    "something else answers": ({A: [page(200)], B: [DONE]}, [A, B]),
    "our body came too slowly": ({A: [refusal(CODE.BODY_TIMED_OUT)], B: [DONE]}, [A, B]),
}


@pytest.mark.parametrize("script", ANSWERED.values(), ids=ANSWERED.keys())
@virtual
async def test_it_asks_until_somebody_answers(
    script: tuple[dict[str, list[Answer]], list[str]],
) -> None:
    answers, urls = script
    controllers = ScriptedControllers({url: list(each) for url, each in answers.items()})
    requests = requests_to(controllers, *[url for url in answers if url != C])
    assert await change(requests) == BreakGrantReply(revision=7, broken=True)
    assert controllers.urls == urls
    assert len({asked.id for asked in controllers.asked}) == 1, "one request id in all tries"
    assert requests.url == urls[-1], "the next request begins there"


@virtual
async def test_a_client_of_forwarded_ports_follows_nobody_to_other_urls() -> None:
    elsewhere = refusal(CODE.NOT_CONTROLLER, leader=C)
    controllers = ScriptedControllers({A: [elsewhere], B: [DONE], C: [DONE]})
    await change(requests_to(controllers, A, B, only_named=True))
    assert controllers.urls == [A, B]


@virtual
async def test_two_that_name_each_other_are_asked_with_pauses_until_the_time_is_over() -> None:
    answers: dict[str, list[Answer]] = {
        A: [refusal(CODE.NOT_CONTROLLER, leader=B)],
        B: [refusal(CODE.NOT_CONTROLLER, leader=A)],
    }
    controllers = ScriptedControllers(answers)
    with pytest.raises(Unavailable, match="in 3 s"):
        await change(requests_to(controllers))
    assert len(controllers.asked) < 150


ENDED: dict[str, tuple[list[Answer], type[CoordinationError], str, type[CoordinationError], str]]
ENDED = {
    "never reached": ([REFUSED], Unavailable, "not_applied", Unavailable, "not_applied"),
    "no leader": ([NOT_LEADER], Unavailable, "not_applied", Unavailable, "not_applied"),
    "lost, then away": ([LOST, REFUSED], OutcomeUnknown, "unknown", Unavailable, "not_applied"),
    "hangs": ([None], OutcomeUnknown, "unknown", Unavailable, "not_applied"),
    "timed out, then no leader": (
        [refusal(CODE.REQUEST_TIMED_OUT), NOT_LEADER],
        OutcomeUnknown,
        "unknown",
        Unavailable,
        "not_applied",
    ),
    "something else answers": (
        [page(200)],
        OutcomeUnknown,
        "unknown",
        Unavailable,
        "not_applied",
    ),
    "a gateway waited too long": (
        [page(504), REFUSED],
        OutcomeUnknown,
        "unknown",
        Unavailable,
        "not_applied",
    ),
    "a defect": (
        [refusal(CODE.UNKNOWN_SERVER_ERROR)],
        OutcomeUnknown,
        "unknown",
        CoordinationError,
        "not_applied",
    ),
    "a gateway's defect": (
        [page(500)],
        OutcomeUnknown,
        "unknown",
        CoordinationError,
        "not_applied",
    ),
    "refused": (
        [refusal(CODE.KEY_EXISTS, operation="0")],
        KeyExists,
        "not_applied",
        KeyExists,
        "not_applied",
    ),
    "lost, then refused": (
        [LOST, refusal(CODE.KEY_EXISTS, operation="0")],
        OutcomeUnknown,
        "unknown",
        KeyExists,
        "not_applied",
    ),
    "lost, then the session is over": (
        [LOST, refusal(CODE.SESSION_LOST)],
        SessionLost,
        "unknown",
        SessionLost,
        "not_applied",
    ),
    "unknown to them": (
        [refusal(CODE.UNAUTHENTICATED)],
        AuthFailed,
        "not_applied",
        AuthFailed,
        "not_applied",
    ),
}
"""What a controller answers; of a change the error and its outcome; of a read the same."""


@pytest.mark.parametrize("script", ENDED.values(), ids=ENDED.keys())
@virtual
async def test_what_no_try_answers_is_an_error_with_its_outcome(
    script: tuple[list[Answer], type[CoordinationError], str, type[CoordinationError], str],
) -> None:
    answers, *expected = script
    found: list[object] = []
    for ask in (change, read):
        controllers = ScriptedControllers({A: list(answers)})
        requests = requests_to(controllers)
        begun = requests.clock.monotonic()
        with pytest.raises(CoordinationError) as raised:
            await ask(requests)
        found += [type(raised.value), raised.value.outcome]
        assert requests.clock.monotonic() - begun <= requests.timeout_s + LATENCY_S
    assert found == expected


@virtual
async def test_a_controller_that_hangs_costs_one_try_of_three() -> None:
    controllers = ScriptedControllers({A: [None], B: [DONE]})
    requests = requests_to(controllers, timeout_s=6.0)
    await change(requests)
    first, second = controllers.asked
    assert first.deadline_s == 2.0
    assert second.at_s - first.at_s == pytest.approx(2.05)


@virtual
async def test_all_are_asked_before_the_client_waits_as_long_as_they_say() -> None:
    controllers = ScriptedControllers({A: [NO_QUORUM], B: [NO_QUORUM], C: [NO_QUORUM]})
    with pytest.raises(Unavailable):
        await change(requests_to(controllers))
    assert controllers.urls[:6] == [A, B, C, A, B, C]
    begun, waited = controllers.asked[0].at_s, controllers.asked[3].at_s
    assert controllers.asked[2].at_s - begun < 0.2
    assert 1.0 <= waited - controllers.asked[2].at_s <= 1.5 + LATENCY_S


@virtual
async def test_a_crowd_waits_its_turn_and_no_request_takes_longer_than_its_time() -> None:
    controllers = ScriptedControllers({A: [None], B: [None]})
    requests = requests_to(controllers, timeout_s=3.0)
    begun = requests.clock.monotonic()
    crowd = [asyncio.create_task(read(requests)) for _ in range(40)]
    await asyncio.sleep(0.1)
    assert len(controllers.asked) == 16
    controllers.answers[B] = controllers.answers[A] = [ok(RenewSessionReply(ttl_ms=1, revision=1))]
    message = RenewSessionRequest("s")
    beat = await requests.ask("POST", "/beat", RenewSessionReply, message)
    assert beat.ttl_ms == 1, "a heartbeat doesn't wait behind a crowd"
    controllers.answers[A] = controllers.answers[B] = [None]
    ended = await asyncio.gather(*crowd, return_exceptions=True)
    assert {type(each) for each in ended} == {Unavailable}
    assert requests.clock.monotonic() - begun == pytest.approx(3.0)


@virtual
async def test_a_crowd_of_our_own_is_no_reason_to_leave_the_leader() -> None:
    controllers = ScriptedControllers({A: [None], B: [DONE]})
    requests = requests_to(controllers, timeout_s=1.0)
    holders = [asyncio.create_task(requests._room.acquire()) for _ in range(16)]
    await asyncio.gather(*holders)
    with pytest.raises(Unavailable, match="too many requests"):
        await read(requests)
    assert requests.url == A
    assert not controllers.asked


@pytest.mark.parametrize("ask", [read, change])
@virtual
async def test_a_cancelled_request_is_abandoned_and_gives_its_turn_back(ask: Any) -> None:
    controllers = ScriptedControllers({A: [None]})
    requests = requests_to(controllers)
    crowd = [asyncio.create_task(ask(requests)) for _ in range(16)]
    await asyncio.sleep(0.1)
    for each in crowd:
        each.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    controllers.answers[A] = [DONE]
    await ask(requests)


# -- request ids --------------------------------------------------------------------------------

HOUR_MS = 3_600_000


@pytest.mark.parametrize("code", [CODE.REQUEST_FROM_FUTURE, CODE.REQUEST_EXPIRED])
@pytest.mark.parametrize("ahead_ms", [-HOUR_MS, HOUR_MS])
@virtual
async def test_a_wrong_clock_of_the_client_stops_no_change(code: ErrorCode, ahead_ms: int) -> None:
    controllers = ScriptedControllers({A: [REFUSED]})
    requests = requests_to(controllers)
    theirs = requests.clock.wall_ms() - ahead_ms
    controllers.answers[A] = [refusal(code, time_ms=theirs), DONE]
    await change(requests)
    await change(requests)
    ids = [asked.id or "" for asked in controllers.asked]
    assert len(set(ids)) == 3
    times = [uuid7_time_ms(parse_uuid(each)) for each in ids]
    assert 0 <= times[0] - theirs - ahead_ms < 1000
    assert abs(times[1] - theirs) < 1000
    assert abs(times[2] - theirs) < 1000, "and it goes on with their time"


FINAL: dict[str, tuple[list[Answer], str | None]] = {
    "a second time": (
        [refusal(CODE.REQUEST_FROM_FUTURE, time_ms=1)] * 2,
        None,
    ),
    "behind a lost reply": ([LOST, refusal(CODE.REQUEST_EXPIRED, time_ms=1)], None),
    "of the caller's own UUIDv7": (
        [refusal(CODE.REQUEST_EXPIRED, time_ms=1)],
        "AAAAAAAAcACAAAAAAAAAAA",
    ),
    "without the time": ([refusal(CODE.REQUEST_EXPIRED)], None),
}


@pytest.mark.parametrize("script", FINAL.values(), ids=FINAL.keys())
@virtual
async def test_otherwise_a_refused_id_is_final(script: tuple[list[Answer], str | None]) -> None:
    answers, name = script
    controllers = ScriptedControllers({A: list(answers)})
    requests = requests_to(controllers)
    message = BreakGrantRequest("lock", "l")
    with pytest.raises(CoordinationError):
        await requests.ask(
            "POST", "/x", BreakGrantReply, message, request_id=requests.request_ids.of(name)
        )
    assert len(controllers.asked) == len(answers)


@virtual
async def test_a_callers_own_id_is_the_same_each_time_and_a_uuid7_stays_as_it_is() -> None:
    ids = requests_to(ScriptedControllers({A: [DONE]})).request_ids
    first = ids.of("job 7")
    assert first.fresh
    again = ids.of("job 7")
    assert (again.text, again.fresh) == (first.text, False)
    assert ids.of("job 8").text != first.text
    drawn = ids.of(None).text
    assert ids.of(drawn).text == drawn
    for number in range(1000):
        ids.of(f"other {number}")
    assert ids.of("job 7").text != first.text, "only the last thousand are remembered"


@pytest.mark.parametrize(
    "text",
    [
        "AAAAAAAAQACAAAAAAAAAAA",  # a UUIDv4
        "_____-_fcACAAAAAAAAAAA",  # a UUIDv7 of the far future
        "Zm9vYmFyYmF6cXV4cXV1eA",  # 16 random bytes
        "0190163d-8694-739b-aea5-966c26f8ad91",
    ],
)
@virtual
async def test_a_text_that_only_looks_like_an_id_counts_in_this_client(text: str) -> None:
    given = requests_to(ScriptedControllers({A: [DONE]})).request_ids.of(text)
    assert given.text != text
    assert given.name == text
