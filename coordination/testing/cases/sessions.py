"""Cases S1 to S3, S9 to S11 and S14: a session from its opening to its end."""

import asyncio

from coordination.errors import ConfigError, SessionLost
from coordination.testing.case import case
from coordination.testing.harness import Harness
from coordination.testing.store import Ability
from coordination.types import SessionState


@case()
async def s1_open_reports_id_ttl_and_deadline(h: Harness) -> None:
    """Opening returns an id, the granted ttl and a deadline in the future."""
    a = await h.make_client()
    assert a.session.id
    assert h.capabilities.min_ttl_s <= a.session.ttl <= h.capabilities.max_ttl_s
    assert h.now() < a.session.deadline <= h.now() + a.session.ttl
    assert a.session.state is SessionState.CONNECTED


@case()
async def s2_heartbeats_keep_it(h: Harness) -> None:
    """Heartbeats keep a session for 5T without other traffic."""
    a, b = await h.make_clients(2)
    opened = a.session.id
    await a.group("g").join("a")
    await asyncio.sleep(5 * h.ttl)
    assert a.session.state is SessionState.CONNECTED
    assert a.session.id == opened
    assert await b.group("g").membership_list() == {"a"}


@case()
async def s3_close_ends_what_it_has(h: Harness) -> None:
    """Members, terms and locks of a session are gone before close returns."""
    a, b = await h.make_clients(2)
    await a.group("g").join("a")
    assert await a.election("e").nominate("a")
    assert await a.lock("l").try_acquire()
    await a.aclose()
    assert await b.group("g").membership_list() == frozenset()
    assert await b.election("e").get_leader() is None
    assert await b.lock("l").holder() is None
    await a.aclose()
    assert a.session.state is SessionState.CLOSED


@case(Ability.CUT)
async def s9_a_new_session_is_another(h: Harness) -> None:
    """After a loss, a new session has another id and a larger epoch."""
    a = await h.make_client()
    before = a.session
    h.cut(a, refuse=True)
    await h.in_time(before.wait_lost(), "the session is lost")
    again = (await h.make_client()).session
    assert again.id != before.id
    assert again.epoch > before.epoch


@case()
async def s10_closed_sessions_refuse(h: Harness) -> None:
    """Each operation on a closed session raises SessionLost and none hangs."""
    a = await h.make_client()
    group, election, lock, storage = a.group("g"), a.election("e"), a.lock("l"), a.storage
    await a.aclose()
    calls = (
        group.join("a"),
        group.leave("a"),
        election.nominate("a"),
        election.resign("a"),
        lock.try_acquire(),
        storage.put("k", b"v"),
        storage.fetch("k"),
        storage.delete("k"),
    )
    for call in calls:
        try:
            await h.in_time(call)
        except SessionLost:
            continue
        raise AssertionError(f"{call} succeeded on a closed session")


@case()
async def s11_sessions_are_independent(h: Harness) -> None:
    """The end of one session leaves another one of the same process alone."""
    a, b = await h.make_clients(2)
    assert a.session.id != b.session.id
    await a.group("g").join("a")
    await b.group("g").join("b")
    await a.aclose()
    assert await b.group("g").membership_list() == {"b"}
    assert b.session.state is SessionState.CONNECTED


@case()
async def s14_ttl_limits(h: Harness) -> None:
    """A ttl out of bounds is clamped and reported, or refused; it is never silently different."""
    await h.make_client()
    limits = h.capabilities
    for asked in (limits.min_ttl_s / 4, limits.max_ttl_s * 4):
        try:
            client = await h.make_client(ttl=asked)
        except ConfigError:
            continue
        assert limits.min_ttl_s <= client.session.ttl <= limits.max_ttl_s
        assert client.session.deadline <= h.now() + client.session.ttl
