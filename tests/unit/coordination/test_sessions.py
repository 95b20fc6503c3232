"""Sessions: what a client knows of its own, on virtual time."""

import asyncio

import pytest

from coordination.errors import ConfigError, SessionClosed, SessionLost, Unavailable
from coordination.types import Revision, SessionState
from tests.unit.coordination.virtual_loop import (
    VirtualClock,
    client,
    cut,
    heal,
    kill,
    store_of,
    virtual,
)


@virtual
async def test_heartbeats_keep_a_session_and_its_deadline_ahead() -> None:
    async with client() as a:
        clock = VirtualClock()
        for _ in range(500):
            await asyncio.sleep(0.1)
            assert a.session.deadline > clock.monotonic() + 5.9
        assert a.session.state is SessionState.CONNECTED
        assert a.session.ttl == 10.0


@virtual
async def test_the_deadline_counts_from_when_the_heartbeat_was_sent() -> None:
    async with client() as a:
        renew, clock, sent = a.backend.renew, VirtualClock(), []

        async def slow(session):
            sent.append(clock.monotonic())
            await asyncio.sleep(2.0)
            return await renew(session)

        a.backend.renew = slow
        await asyncio.sleep(6.0)
        # A margin of a tenth of the ttl, and the answer took two seconds.
        assert a.session.deadline == pytest.approx(sent[0] + 10.0 - 1.0)


@virtual
async def test_a_client_that_is_cut_off_loses_its_session_before_the_store_ends_it() -> None:
    async with client("a") as a, client("b") as b:
        await a.group("g").join("m")
        await asyncio.sleep(4.0)
        acknowledged = a.session.deadline - 9.0
        clock = VirtualClock()
        cut(a)
        await a.session.wait_lost()
        assert clock.monotonic() <= acknowledged + 9.0 + 0.001
        assert await b.group("g").membership_list() == {"m"}
        await asyncio.sleep(1.5)
        assert await b.group("g").membership_list() == set()
        with pytest.raises(SessionLost, match="no heartbeat was acknowledged"):
            await a.storage.fetch("k")


@virtual
async def test_a_short_cut_suspends_and_comes_back() -> None:
    async with client() as a:
        states = []

        async def look():
            states.extend([state async for state in a.session.events()])

        looking = asyncio.create_task(look())
        await asyncio.sleep(1.0)
        id_ = a.session.id
        cut(a)
        await asyncio.sleep(4.0)
        heal(a)
        await asyncio.sleep(20.0)
        assert (a.session.id, a.session.state) == (id_, SessionState.CONNECTED)
    await looking
    assert [state.name for state in states] == ["CONNECTED", "SUSPENDED", "CONNECTED", "CLOSED"]


@virtual
async def test_a_process_that_was_stopped_loses_its_session_before_any_call_succeeds() -> None:
    async with client() as a:
        await a.storage.upsert("k", b"1")
        VirtualClock().pause(30.0)
        with pytest.raises(SessionLost):
            await a.storage.fetch("k")
        assert a.session.state is SessionState.LOST


@virtual
async def test_a_pause_within_a_call_loses_the_session_before_its_result_counts() -> None:
    async with client() as a:
        get = a.backend.get

        async def paused(key, *, stale):
            record = await get(key, stale=stale)
            VirtualClock().pause(30.0)
            return record

        a.backend.get = paused
        with pytest.raises(SessionLost):
            await a.storage.fetch("k")


@virtual
async def test_the_stores_word_ends_a_session_once() -> None:
    async with client() as a:
        states = []

        async def look():
            states.extend([state async for state in a.session.events()])

        looking = asyncio.create_task(look())
        await asyncio.sleep(0.1)
        await a.group("g").join("m")
        store_of(a).end_session(a.session.id)
        with pytest.raises(SessionLost):
            await a.group("g").join("other")
        await looking
        assert [state.name for state in states] == ["CONNECTED", "LOST"]
        assert store_of(a).entries(a.group("g")._key).entries == ()


@virtual
async def test_a_store_that_did_not_notice_the_silence_is_told_after_the_margin() -> None:
    async with client("a") as a, client("b") as b:
        await a.group("g").join("m")
        store = store_of(a)

        async def unheard(session):
            raise Unavailable("the way back is cut")

        a.backend.renew = unheard
        store.expire = lambda now_s: None
        await a.session.wait_lost()
        await asyncio.sleep(0.9)
        assert await b.group("g").membership_list() == {"m"}
        await asyncio.sleep(0.2)
        assert await b.group("g").membership_list() == set()
        del store.expire


@virtual
async def test_a_scope_cancels_its_body_at_the_loss() -> None:
    async with client() as a:
        steps = []
        cut(a)

        async def body():
            async with a.session.scope():
                try:
                    await asyncio.sleep(1000.0)
                except asyncio.CancelledError:
                    steps.append("cancelled")
                    raise

        with pytest.raises(SessionLost):
            await body()
        assert steps == ["cancelled"]
        assert asyncio.current_task().cancelling() == 0
        with pytest.raises(SessionLost):
            async with a.session.scope():
                steps.append("never")
        assert steps == ["cancelled"]


@virtual
async def test_a_scope_lets_other_cancellations_pass() -> None:
    async with client() as a:

        async def body():
            async with a.session.scope():
                await asyncio.sleep(1000.0)

        task = asyncio.create_task(body())
        await asyncio.sleep(1.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with a.session.scope(), asyncio.timeout(1.0):
                await asyncio.sleep(1000.0)


@virtual
async def test_closing_removes_everything_and_says_so_to_who_waits() -> None:
    async with client("b") as b:
        a = await client("a")
        await a.group("g").join("m")
        async with b.lock("l")():
            waiting = asyncio.create_task(a.lock("l").acquire())
            watching = asyncio.create_task(anext(a.storage.watch("k", after=Revision(0))))
            await asyncio.sleep(1.0)
            await a.aclose()
            assert await b.group("g").membership_list() == set()
            for task in (waiting, watching):
                with pytest.raises(SessionClosed):
                    await task
            await a.aclose()
            with pytest.raises(SessionClosed):
                await a.storage.fetch("k")


@virtual
async def test_closing_a_client_that_is_cut_off_ends() -> None:
    a = await client("a")
    cut(a)
    started = asyncio.get_running_loop().time()
    await a.aclose()
    assert asyncio.get_running_loop().time() - started < 5.0


@virtual
async def test_a_new_session_after_a_loss_has_a_larger_epoch() -> None:
    async with client() as a:
        with pytest.raises(ConfigError, match="only a lost one"):
            await a.reopen()
        old = a.session
        store_of(a).end_session(old.id)
        await old.wait_lost()
        new = await a.reopen()
        assert new.id != old.id
        assert new.epoch > old.epoch
        assert old.state is SessionState.LOST
        await a.storage.upsert("k", b"")


@virtual
async def test_a_killed_client_stays_until_its_ttl_and_no_longer() -> None:
    async with client("b") as b:
        a = await client("a")
        await a.group("g").join("m")
        await kill(a)
        await asyncio.sleep(9.0)
        assert await b.group("g").membership_list() == {"m"}
        await asyncio.sleep(1.5)
        assert await b.group("g").membership_list() == set()
        await a.aclose()


@pytest.mark.parametrize(("asked", "granted"), [(0.001, 0.05), (10.0, 10.0), (1e9, 86_400.0)])
def test_a_ttl_outside_the_limits_is_clamped_and_reported(asked: float, granted: float) -> None:
    @virtual
    async def test() -> None:
        async with client(ttl=asked) as a:
            assert a.session.ttl == granted

    test()


@virtual
async def test_a_margin_as_long_as_the_ttl_is_refused() -> None:
    with pytest.raises(ConfigError, match="safety_margin"):
        await client(ttl=2.0, safety_margin=2.0)
