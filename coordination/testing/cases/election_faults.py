"""Cases E6 to E8 and E11 to E15: elections whose leaders die, are cut off, or give up half way."""

import asyncio
import itertools
from contextlib import suppress
from functools import partial

from coordination.coordinator import Coordinator
from coordination.errors import CoordinationError, OutcomeUnknown, SessionLost
from coordination.testing.case import case
from coordination.testing.cases.elections import candidates, leads
from coordination.testing.harness import Harness
from coordination.testing.seen import seen
from coordination.testing.store import Ability


@case()
async def e6_a_killed_leader_is_replaced(h: Harness) -> None:
    """The next candidate leads eventually after the leader is killed, not before its deadline."""
    a, b = await h.make_clients(2)
    first = await a.election("e").nominate("a")
    assert first
    await b.election("e").nominate("b")
    deadline = a.session.deadline
    await h.kill_client(a)
    await h.eventually(lambda: leads(b, "e", "b"), "the successor leads")
    assert h.now() >= deadline, "the successor led before the leader's deadline"
    leader = await b.election("e").get_leader()
    assert leader is not None
    assert leader.token > first.token


@case()
async def e7_withdraw(h: Harness) -> None:
    """A candidate that withdrew never leads, also when its cancelled campaign was about to win."""
    a, b = await h.make_clients(2)
    await a.election("e").nominate("a")
    await b.election("e").nominate("b")
    assert await b.election("e").withdraw("b")
    assert not await b.election("e").withdraw("b")
    await a.election("e").resign("a")
    assert await leads(b, "e", None)
    for turn in range(10):
        await a.election("e").nominate("a")
        campaign = h.start(_lead_until_cancelled(b, "e", "b"))
        await h.eventually(lambda: _is_candidate(a, "e", "b"), "b is a candidate")
        resign = h.start(a.election("e").resign("a"))
        for _ in range(turn):
            await asyncio.sleep(0)
        campaign.cancel()
        await h.in_time(asyncio.gather(campaign, resign, return_exceptions=True))
        await h.eventually(lambda: leads(a, "e", None), "nobody leads")
        assert await candidates(a, "e") == []


async def _lead_until_cancelled(client: Coordinator, service: str, name: str) -> None:
    async with client.election(service).campaign(name):
        await asyncio.Event().wait()


async def _is_candidate(client: Coordinator, service: str, name: str) -> bool:
    return name in await candidates(client, service)


@case()
async def e8_an_observer(h: Harness) -> None:
    """An observer sees A, nobody or B in the order of revisions, and never B before A's end."""
    a, b, observer = await h.make_clients(3)
    async with seen(observer.election("e").watch()) as events:
        assert events[0].leader is None
        await a.election("e").nominate("a")
        await b.election("e").nominate("b")
        await a.election("e").resign("a")
        await h.until(lambda: events[-1].leader and events[-1].leader.id == "b", "b is seen")
        await b.election("e").resign("b")
        await h.until(lambda: events[-1].leader is None, "the end is seen")
        revisions = [event.revision for event in events]
        tokens = [event.leader.token for event in events if event.leader]
        names = [event.leader.id if event.leader else "" for event in events]
    assert revisions == sorted(revisions)
    assert tokens == sorted(tokens)
    last_of_a = max((place for place, name in enumerate(names) if name == "a"), default=-1)
    assert names.index("b") > last_of_a


@case(Ability.CUT)
async def e11_a_leader_is_cut_off(h: Harness) -> None:
    """The body of a leader that is cut off is cancelled before anybody else leads."""
    a, b = await h.make_clients(2)
    moments: dict[str, float] = {}
    leading = asyncio.Event()

    async def first() -> None:
        try:
            async with a.election("e").campaign("a"):
                leading.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    moments["ended"] = h.now()
        except SessionLost:
            moments["raised"] = h.now()

    async def second() -> None:
        async with b.election("e").campaign("b"):
            moments["led"] = h.now()

    one = h.start(first())
    await h.in_time(leading.wait(), "a leads")
    two = h.start(second())
    await h.eventually(lambda: _is_candidate(a, "e", "b"), "b waits")
    h.cut(a)
    await h.in_time(two, "b leads")
    await h.in_time(one, "a's campaign ends")
    assert moments["ended"] < moments["led"]
    assert "raised" in moments, "the campaign didn't raise SessionLost"


@case()
async def e12_ten_leaders_die(h: Harness) -> None:
    """Ten candidates lead one after the other as each is killed; never two at once."""
    clients = await h.make_clients(10)
    spans: list[tuple[int, float, float]] = []
    led: asyncio.Queue[int] = asyncio.Queue()

    async def lead(number: int) -> None:
        async with clients[number].election("e").campaign(f"c{number}") as term:
            begin = h.now()
            led.put_nowait(number)
            try:
                await asyncio.Event().wait()
            finally:
                spans.append((term.token, begin, h.now()))

    observer = await h.make_client()
    tasks = []
    for number in range(10):
        tasks.append(h.start(lead(number)))
        await h.eventually(partial(_is_candidate, observer, "e", f"c{number}"), "it is a candidate")
    for turn in range(10):
        number = await h.in_time(led.get(), f"leader {turn} is found")
        assert number == turn
        await h.kill_client(clients[number])
        tasks[number].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    spans.sort(key=lambda span: span[1])
    assert len({token for token, _, _ in spans}) == 10
    assert [token for token, _, _ in spans] == sorted(token for token, _, _ in spans)
    for (_, _, end), (_, begin, _) in itertools.pairwise(spans):
        assert end <= begin, "two led at once"


@case(Ability.CUT)
async def e13_a_resignations_reply_is_lost(h: Harness) -> None:
    """A resignation whose reply was lost can be tried again and leaves the successor alone."""
    a, b = await h.make_clients(2)
    term = await a.election("e").nominate("a")
    assert term
    await b.election("e").nominate("b")
    resign = await h.drop_next_reply(
        a, a.election("e").resign("a", token=term.token), lambda: leads(b, "e", "b")
    )
    with suppress(OutcomeUnknown):
        await h.in_time(resign)
    await h.in_time(a.election("e").resign("a", token=term.token))
    assert await leads(b, "e", "b")
    assert await candidates(b, "e") == ["b"]


@case(Ability.CUT)
async def e14_a_waiting_candidates_session_dies(h: Harness) -> None:
    """A campaign raises SessionLost when the session dies while it waits; it never leads later."""
    a, b = await h.make_clients(2)
    await a.election("e").nominate("a")
    campaign = h.start(_lead_until_cancelled(b, "e", "b"))
    await h.eventually(lambda: _is_candidate(a, "e", "b"), "b waits")
    # Others may see the candidate before its own client has the reply.
    await asyncio.sleep(h.ttl / 4)
    h.cut(b)
    try:
        await h.in_time(campaign, "the campaign ends with its session")
    except SessionLost:
        pass
    else:
        raise AssertionError("a campaign without a session went on")
    h.heal(b)
    await h.eventually(lambda: _has_only(a, "e", "a"), "the dead candidate is gone")
    await a.election("e").resign("a")
    assert await leads(a, "e", None)


async def _has_only(client: Coordinator, service: str, name: str) -> bool:
    return await candidates(client, service) == [name]


@case(Ability.CUT)
async def e15_a_campaign_fails_half_way(h: Harness) -> None:
    """A campaign that fails leaves no candidate behind."""
    a, b = await h.make_clients(2)
    await a.election("e").nominate("a")

    async def campaign() -> str:
        try:
            async with b.election("e").campaign("b", timeout=h.ttl / 2):
                return "led"
        except CoordinationError as error:
            return type(error).__name__

    failed = await h.drop_next_reply(b, campaign(), lambda: _is_candidate(a, "e", "b"))
    assert await h.in_time(failed, "the campaign gives up") != "led"
    await h.eventually(lambda: _has_only(a, "e", "a"), "no candidate is left behind")
    late = h.start(campaign())
    assert await h.in_time(late) == "DeadlineExceeded"
    assert await candidates(a, "e") == ["a"]


@case(busy=True)
async def e18_everybody_takes_turns(h: Harness) -> None:
    """Five clients lead in turns, 200 times in all: no deadlock, nobody lost, never two at once."""
    clients = await h.make_clients(5)
    leading: set[int] = set()
    tokens: list[int] = []
    turns = h.volume(200) // 5

    async def take_turns(number: int) -> None:
        for _ in range(turns):
            async with clients[number].election("e").campaign(f"c{number}") as term:
                assert not leading, f"{number} leads beside {leading}"
                leading.add(number)
                tokens.append(term.token)
                await asyncio.sleep(0)
                leading.discard(number)

    await h.in_time(
        asyncio.gather(*(take_turns(number) for number in range(5))),
        "all turns are taken",
        within=h.crowd_patience,
    )
    assert len(tokens) == 5 * turns
    assert tokens == sorted(set(tokens))
    assert await candidates(clients[0], "e") == []
