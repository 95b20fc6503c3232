"""Locks: exclusion, order, sharing, and what becomes of waiters, on virtual time."""

import asyncio

import pytest

from coordination.errors import DeadlineExceeded, NotHeld, NotSupported, SessionLost
from tests.unit.coordination.virtual_loop import client, cut, virtual


@virtual
async def test_one_holder_at_a_time_in_order_of_asking() -> None:
    async with client("a") as a, client("b") as b:
        holders, order, tokens = [], [], []

        async def work(who, number):
            for _ in range(5):
                async with who.lock("l")() as grant:
                    holders.append(number)
                    assert len(holders) == 1
                    order.append(number)
                    tokens.append(grant.token)
                    await asyncio.sleep(0.01)
                    holders.remove(number)

        await asyncio.gather(*(work((a, b)[n % 2], n) for n in range(10)))
        assert tokens == sorted(set(tokens))
        assert sorted(order[:10]) == list(range(10)), "nobody is served twice before all were once"
        assert await a.lock("l").holder() is None


@pytest.mark.parametrize("timeout_s", [0.0, 0.2])
def test_a_taken_lock_is_refused_after_the_time_out(timeout_s: float) -> None:
    @virtual
    async def test() -> None:
        async with client("a") as a, client("b") as b:
            grant = await a.lock("l").try_acquire()
            assert grant.held
            assert await b.lock("l").try_acquire() is None
            started = asyncio.get_running_loop().time()
            with pytest.raises(DeadlineExceeded):
                async with b.lock("l")(timeout=timeout_s):
                    pass
            waited_s = asyncio.get_running_loop().time() - started
            assert waited_s == pytest.approx(timeout_s, abs=0.01)
            assert (await b.lock("l").holder()).token == grant.token
            assert len((await a.backend.entries(grant.full_resource)).entries) == 1

    test()


@virtual
async def test_a_release_twice_frees_nobody_elses_lock() -> None:
    async with client("a") as a, client("b") as b:
        grant = await a.lock("l").acquire()
        assert await grant.release()
        other = await b.lock("l").acquire()
        assert not await grant.release()
        assert other.held
        assert (await a.lock("l").holder()).token == other.token


@virtual
async def test_a_cancelled_waiter_lets_the_next_one_pass() -> None:
    async with client("a") as a, client("b") as b:
        grant = await a.lock("l").acquire()
        waiter = asyncio.create_task(b.lock("l").acquire())
        await asyncio.sleep(0.1)
        next_one = asyncio.create_task(b.lock("l").acquire())
        await asyncio.sleep(0.1)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        await grant.release()
        assert (await next_one).token > grant.token


@virtual
async def test_an_expired_holder_is_cancelled_and_the_next_token_is_larger() -> None:
    async with client("a") as a, client("b") as b:
        first = []

        async def hold():
            async with a.lock("l")() as grant:
                first.append(grant)
                cut(a)
                await asyncio.sleep(1000.0)

        holding = asyncio.create_task(hold())
        await asyncio.sleep(0.1)
        async with b.lock("l")() as grant:
            assert grant.token > first[0].token
            assert not first[0].held
        with pytest.raises(SessionLost):
            await holding


@virtual
async def test_a_task_that_asks_twice_is_told_that_locks_are_not_reentrant() -> None:
    async with client("a") as a:
        async with a.lock("l")():
            with pytest.raises(NotSupported, match="re-entrant"):
                await a.lock("l").acquire()
            async with a.lock("other")():
                pass
        async with a.lock("l")():
            pass


@virtual
async def test_readers_share_and_a_writer_excludes() -> None:
    async with client("a") as a, client("b") as b, client("c") as c:
        one = await a.lock("l").acquire(shared=True)
        two = await b.lock("l").acquire(shared=True)
        assert one.held
        assert two.held
        writer = asyncio.create_task(b.lock("l").acquire())
        await asyncio.sleep(0.1)
        assert await c.lock("l").try_acquire(shared=True) is None, "not before the writer"
        await one.release()
        await asyncio.sleep(0.1)
        assert not writer.done()
        await two.release()
        assert not (await writer).shared


@virtual
async def test_an_administrator_breaks_a_lock() -> None:
    async with client("a") as a, client("b") as b:
        tokens = []

        async def hold():
            async with a.lock("l")() as grant:
                tokens.append(grant.token)
                assert await b.lock("l").break_()
                await asyncio.sleep(1000.0)

        with pytest.raises(NotHeld):
            await hold()
        assert not await b.lock("l").break_()
        assert (await b.lock("l").acquire()).token > tokens[0]
