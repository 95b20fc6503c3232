"""Semaphores: how many hold at once, in which order, and with which fence, on virtual time."""

import asyncio

import pytest

from coordination.errors import ConfigError, DeadlineExceeded, Fenced, NotHeld, SessionLost
from tests.unit.coordination.virtual_loop import client, cut, virtual


@pytest.mark.parametrize("permits", [1, 2, 5])
@virtual
async def test_never_more_than_so_many_hold_and_all_are_served_in_order(permits: int) -> None:
    async with client("a") as a, client("b") as b:
        inside, most, order = set(), [], []

        async def work(number: int) -> None:
            who = (a, b)[number % 2]
            async with who.semaphore("s", permits)():
                order.append(number)
                inside.add(number)
                most.append(len(inside))
                await asyncio.sleep(0.1 + number % 3)
                inside.remove(number)

        tasks = []
        for number in range(20):
            tasks.append(asyncio.create_task(work(number)))
            await asyncio.sleep(0.01)
        await asyncio.gather(*tasks)
        assert max(most) == permits
        assert order == list(range(20))
        assert await a.semaphore("s", permits).holders() == ()


@virtual
async def test_a_taken_permit_is_refused_after_the_time_out_and_leaves_no_entry() -> None:
    async with client("a") as a, client("b") as b:
        first = await a.semaphore("s", 1).try_acquire()
        assert first is not None
        assert await b.semaphore("s", 1).try_acquire() is None
        with pytest.raises(DeadlineExceeded):
            await b.semaphore("s", 1).acquire(timeout=0.5)
        assert len((await a.backend.entries(first.full_resource)).entries) == 1
        assert await first.release()
        assert not await first.release()
        async with b.semaphore("s", 1)(timeout=0):
            pass


@virtual
async def test_a_permit_is_a_fence_until_it_is_given_back() -> None:
    async with client("a") as a, client("b") as b:
        permits = a.semaphore("s", 2)
        first, second = await permits.acquire(), await b.semaphore("s", 2).acquire()
        assert second.token > first.token
        for grant, who in ((first, a), (second, b)):
            await who.storage.upsert("k", b"", fence=grant)
        await first.release()
        with pytest.raises(Fenced):
            await a.storage.upsert("k", b"", fence=int(first.token), resource=permits.resource)
        await b.storage.upsert("k", b"", fence=second)


@virtual
async def test_a_lost_session_frees_its_permits_and_ends_the_body_first() -> None:
    async with client("a", ttl=2.0) as a, client("b", ttl=2.0) as b:
        held = asyncio.Event()
        ended = []

        async def hold() -> None:
            try:
                async with a.semaphore("s", 1)() as grant:
                    held.set()
                    cut(a)
                    await asyncio.sleep(60)
            except SessionLost:
                ended.append(grant.held)

        holding = asyncio.create_task(hold())
        await held.wait()
        async with b.semaphore("s", 1)():
            assert ended == [False]
        await holding


@virtual
async def test_whoever_stops_waiting_lets_the_next_one_pass() -> None:
    async with client("a") as a, client("b") as b, client("c") as c:
        first = await a.semaphore("s", 1).acquire()
        waiting = asyncio.create_task(b.semaphore("s", 1).acquire())
        await asyncio.sleep(0.1)
        last = asyncio.create_task(c.semaphore("s", 1).acquire())
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await first.release()
        assert (await last).held


@pytest.mark.parametrize("numbers", [(3, 1), (1, 3)])
@virtual
async def test_while_clients_disagree_the_smaller_number_counts(numbers: tuple[int, int]) -> None:
    async with client("a") as a, client("b") as b:
        first = await a.semaphore("s", numbers[0]).acquire()
        assert await b.semaphore("s", numbers[1]).try_acquire() is None
        await first.release()
        assert await b.semaphore("s", numbers[1]).try_acquire()


@virtual
async def test_a_lock_of_the_same_name_excludes_all_permits() -> None:
    async with client("a") as a, client("b") as b:
        async with a.semaphore("x", 2)():
            assert await b.lock("x").try_acquire() is None
        async with a.lock("x")():
            assert await b.semaphore("x", 2).try_acquire() is None


@virtual
async def test_an_administrator_takes_all_permits_away() -> None:
    async with client("a") as a, client("b") as b:
        permits = a.semaphore("s", 1)
        grant = await permits.acquire()
        waiting = asyncio.create_task(permits.acquire())
        await asyncio.sleep(0.1)
        assert await b.semaphore("s", 1).break_()
        with pytest.raises(NotHeld):
            await waiting
        assert not grant.held
        assert not await b.semaphore("s", 1).break_()


@pytest.mark.parametrize("permits", [0, -1])
@virtual
async def test_a_semaphore_has_a_permit(permits: int) -> None:
    async with client() as a:
        with pytest.raises(ConfigError, match="at least one"):
            a.semaphore("s", permits)
