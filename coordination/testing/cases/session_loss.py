"""Cases S4 to S8, S12 and S13: kills, freezes, cuts, and what a session makes of them."""

import asyncio

from coordination.coordinator import Coordinator
from coordination.errors import SessionLost
from coordination.testing.case import case
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.store import Ability
from coordination.types import SessionState

SLACK_S = 0.3
"""What a busy machine may add to a time that the client keeps itself."""


async def collect_states(client: Coordinator, into: list[SessionState]) -> None:
    """Add each state that the session reports."""
    async for state in client.session.events():
        into += [state]


@case()
async def s4_killed_client(h: Harness) -> None:
    """A killed client's entries stay until its deadline and are gone eventually."""
    a, b = await h.make_clients(2)
    await a.group("g").join("a")
    deadline = a.session.deadline
    await h.kill_client(a)
    looks = 0
    while True:
        members = await b.group("g").membership_list()
        if h.now() >= deadline:
            break
        looks += 1
        assert members == {"a"}, "the entry went before the session's deadline"
        await asyncio.sleep(h.ttl / 20)
    assert looks, "nobody looked before the deadline"
    await h.eventually(lambda: _is_empty(b, "g"), "the entry of the killed client is gone")


async def _is_empty(client: Coordinator, group: str) -> bool:
    return not await client.group(group).membership_list()


@case()
async def s5_frozen_client(h: Harness) -> None:
    """A frozen client's session is LOST on thaw before any operation succeeds."""
    frozen = await h.make_remote_client()
    b = await h.make_client()
    await frozen.call(lambda c: c.group("g").join("a"))
    await h.freeze_client(frozen)
    put = h.start(frozen.call(lambda c: c.storage.put("k", b"late")))
    await h.eventually(lambda: _is_empty(b, "g"), "the frozen client's entry is gone")
    h.thaw_client(frozen)
    await refusal(SessionLost, h.in_time(put))
    assert await frozen.call(_state) is SessionState.LOST
    assert await _is_empty(b, "g")
    assert await b.storage.fetch("k") is None


async def _state(client: Coordinator) -> SessionState:
    return client.session.state


@case(Ability.EXPIRE)
async def s6_the_server_ends_the_session(h: Harness) -> None:
    """When the server ends a session its client gets one LOST, and no entry comes back."""
    a, b = await h.make_clients(2)
    states: list[SessionState] = []
    h.start(collect_states(a, states))
    await a.group("g").join("a")
    held = await b.lock("l").try_acquire()
    assert held
    pending = h.start(a.lock("l")(timeout=None).__aenter__())
    await asyncio.sleep(h.ttl / 10)
    await h.expire(a)
    await h.in_time(a.session.wait_lost(), "the client learns that its session is over")
    await refusal(SessionLost, h.in_time(pending, "the pending call fails"))
    await asyncio.sleep(h.ttl)
    assert states.count(SessionState.LOST) == 1
    assert await _is_empty(b, "g"), "the entry came back by itself"


@case(Ability.CUT)
async def s7_a_short_cut(h: Harness) -> None:
    """After a cut shorter than T the session and its entries are the same."""
    a, b = await h.make_clients(2)
    states: list[SessionState] = []
    h.start(collect_states(a, states))
    await a.group("g").join("a")
    opened = a.session.id
    await asyncio.sleep(0)
    h.cut(a, refuse=True)
    await h.until(lambda: states[-1:] == [SessionState.SUSPENDED], "the cut is noticed")
    h.heal(a)
    assert a.session.id == opened
    await h.until(lambda: states[-1:] == [SessionState.CONNECTED], "the end is reported")
    first = [SessionState.SUSPENDED, SessionState.CONNECTED]
    assert states in (first, [SessionState.CONNECTED, *first]), states
    assert await b.group("g").membership_list() == {"a"}


@case(Ability.CUT)
async def s8_a_long_cut(h: Harness) -> None:
    """A client that is cut off reports LOST by its own deadline, before another has its lock."""
    a, b = await h.make_clients(2)
    held = await a.lock("l").try_acquire()
    assert held
    moments: dict[str, float] = {}

    async def lose() -> None:
        await a.session.wait_lost()
        moments["lost"] = h.now()

    async def gain() -> None:
        async with b.lock("l")() as grant:
            moments["granted"] = h.now()
            moments["token"] = grant.token

    lost, gained = h.start(lose()), h.start(gain())
    await asyncio.sleep(h.ttl / 4)
    h.cut(a)
    cut = h.now()
    await h.in_time(lost, "LOST without hearing from the server")
    assert moments["lost"] <= cut + a.session.ttl + SLACK_S
    assert held.lost.is_set()
    await h.in_time(gained, "the other client gets the lock")
    assert moments["lost"] < moments["granted"]
    assert moments["token"] > held.token


@case(Ability.CUT)
async def s12_a_heartbeats_reply_is_lost(h: Harness) -> None:
    """A session lives on when the reply of a heartbeat is lost."""
    a, b = await h.make_clients(2)
    opened = a.session.id
    await a.group("g").join("a")
    async with h.losing_replies(a):
        await asyncio.sleep(h.ttl / 2)
    await h.until(lambda: a.session.state is SessionState.CONNECTED, "the session goes on")
    await asyncio.sleep(h.ttl)
    assert a.session.id == opened
    assert a.session.state is SessionState.CONNECTED
    assert await b.group("g").membership_list() == {"a"}


@case(Ability.CUT)
async def s13_close_without_a_server(h: Harness) -> None:
    """Close returns within its timeout when no server answers; the entries expire later."""
    a, b = await h.make_clients(2)
    await a.group("g").join("a")
    h.cut(a)
    allowed = 2 * h.store.request_timeout + 2 * SLACK_S
    await h.in_time(a.aclose(), "close returns", within=allowed)
    assert a.session.state in (SessionState.CLOSED, SessionState.LOST)
    await h.eventually(lambda: _is_empty(b, "g"), "the entry expires")
