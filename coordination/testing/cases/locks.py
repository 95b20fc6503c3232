"""Cases L1 to L10: locks, exclusive and shared."""

import asyncio
from contextlib import suppress

from coordination.coordinator import Coordinator
from coordination.errors import CoordinationError, DeadlineExceeded, NotHeld, SessionLost
from coordination.testing.case import case
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.store import Ability

TASKS, ROUNDS = 20, 50


async def entered(client: Coordinator, name: str, order: list[str], who: str) -> None:
    """Acquire a lock, note who did, and release it."""
    async with client.lock(name)():
        order.append(who)


async def is_free(client: Coordinator, name: str) -> bool:
    """Whether nobody holds the lock."""
    return await client.lock(name).holder() is None


@case(busy=True)
async def l1_one_at_a_time(h: Harness) -> None:
    """Of 20 tasks with 50 rounds each, never two hold the lock, and tokens grow."""
    clients = await h.make_clients(TASKS)
    rounds = h.volume(ROUNDS)
    inside: list[int] = []
    tokens: list[int] = []

    async def work(number: int) -> None:
        for _ in range(rounds):
            async with clients[number].lock("l")() as grant:
                assert not inside, f"{number} holds the lock beside {inside}"
                inside.append(number)
                tokens.append(grant.token)
                await asyncio.sleep(0)
                inside.remove(number)

    await h.in_time(
        asyncio.gather(*(work(number) for number in range(TASKS))),
        "everybody had its rounds",
        within=h.crowd_patience,
    )
    assert len(tokens) == TASKS * rounds
    assert tokens == sorted(set(tokens))


@case(busy=True)
async def l2_first_come_first_served(h: Harness) -> None:
    """Waiters get the lock in the order in which they came."""
    clients = await h.make_clients(6)
    held = await clients[0].lock("l").try_acquire()
    assert held
    order: list[str] = []
    waiters = []
    for number, client in enumerate(clients[1:]):
        waiters.append(h.start(entered(client, "l", order, str(number))))
        await asyncio.sleep(max(h.ttl / 10, 2 * h.capabilities.poll_interval_s))
    await held.release()
    await h.in_time(asyncio.gather(*waiters), "all waiters had the lock")
    assert order == sorted(order)


@case()
async def l3_timeouts(h: Harness) -> None:
    """A wait ends after no time, after its time, or not at all, as asked."""
    a, b = await h.make_clients(2)
    held = await a.lock("l").try_acquire()
    assert held
    assert await b.lock("l").try_acquire() is None
    for timeout in (0, 0.2):
        begin = h.now()
        try:
            async with b.lock("l")(timeout=timeout):
                raise AssertionError("two hold the lock")
        except DeadlineExceeded:
            assert h.now() - begin >= timeout
            assert h.now() - begin < timeout + h.patience
    order: list[str] = []
    waiter = h.start(entered(b, "l", order, "b"))
    await asyncio.sleep(h.ttl / 4)
    assert not order
    await held.release()
    await h.in_time(waiter, "who waits without a limit gets the lock")


@case()
async def l4_a_cancelled_waiter(h: Harness) -> None:
    """A cancelled waiter leaves nothing behind, and the next one gets the lock."""
    a, b, c = await h.make_clients(3)
    held = await a.lock("l").try_acquire()
    assert held
    order: list[str] = []
    cancelled = h.start(entered(b, "l", order, "b"))
    await asyncio.sleep(h.ttl / 5)
    waiter = h.start(entered(c, "l", order, "c"))
    await asyncio.sleep(h.ttl / 5)
    cancelled.cancel()
    await h.in_time(asyncio.gather(cancelled, return_exceptions=True))
    await held.release()
    await h.in_time(waiter, "the next waiter gets the lock")
    assert order == ["c"]
    assert await is_free(a, "l")


@case()
async def l5_releasing_twice(h: Harness) -> None:
    """A second release returns False or raises NotHeld, and never frees another's lock."""
    a, b = await h.make_clients(2)
    old = await a.lock("l").try_acquire()
    assert old
    assert await old.release()
    new = await b.lock("l").try_acquire()
    assert new
    with suppress(NotHeld):
        assert not await old.release()
    holder = await a.lock("l").holder()
    assert holder is not None
    assert (holder.token, holder.session) == (new.token, b.session.id)


@case(Ability.CUT)
async def l6_a_holder_expires(h: Harness) -> None:
    """When a holder's session ends its body is cancelled; the next holder's token is larger."""
    a, b = await h.make_clients(2)
    tokens: list[int] = []
    holding = asyncio.Event()
    cancelled = asyncio.Event()

    async def hold() -> None:
        async with a.lock("l")() as grant:
            tokens.append(grant.token)
            holding.set()
            try:
                await asyncio.Event().wait()
            finally:
                assert grant.lost.is_set()
                cancelled.set()

    holder = h.start(hold())
    await h.in_time(holding.wait(), "a holds the lock")
    h.cut(a, refuse=True)
    async with b.lock("l")(timeout=h.patience) as grant:
        assert cancelled.is_set(), "the old holder's body still runs"
        tokens.append(grant.token)
    assert tokens[1] > tokens[0]
    await refusal(SessionLost, h.in_time(holder, "the old holder's task ends"))


@case()
async def l7_not_reentrant(h: Harness) -> None:
    """A holder that acquires its lock again gets an error or no grant, never two grants."""
    a = await h.make_client()
    async with a.lock("l")():
        with suppress(CoordinationError):
            assert await h.in_time(a.lock("l").try_acquire()) is None
        with suppress(CoordinationError):
            async with a.lock("l")(timeout=h.ttl / 5):
                raise AssertionError("one client holds a lock twice")
    assert await is_free(a, "l")


@case(busy=True)
async def l8_two_locks(h: Harness) -> None:
    """Two tasks that take two locks in opposite orders end, by their time-outs."""
    a, b = await h.make_clients(2)
    both: list[str] = []

    async def take(client: Coordinator, first: str, second: str) -> None:
        while first not in both:
            try:
                async with client.lock(first)():
                    await asyncio.sleep(h.ttl / 20)
                    async with client.lock(second)(timeout=h.ttl / 5 + 0.1 * len(first)):
                        both.append(first)
            except DeadlineExceeded:
                continue

    await h.in_time(
        asyncio.gather(take(a, "x", "long"), take(b, "long", "x")),
        "both tasks had both locks",
        within=h.crowd_patience,
    )
    assert sorted(both) == ["long", "x"]
    assert await is_free(a, "x")
    assert await is_free(a, "long")


@case()
async def l9_names_of_locks(h: Harness) -> None:
    """Locks whose names have slashes and other letters are locks of their own."""
    a, b = await h.make_clients(2)
    names = ("a", "a/b", "a/b/", "замок", "錠 1", "%2F", "*")
    grants = [await a.lock(name).try_acquire() for name in names]
    assert all(grants)
    for name in names:
        assert await b.lock(name).try_acquire() is None
        holder = await b.lock(name).holder()
        assert holder is not None
        assert holder.session == a.session.id


@case(busy=True)
async def l10_shared_locks(h: Harness) -> None:
    """Shared holders hold together, an exclusive one alone; a semaphore has so many holders."""
    clients = await h.make_clients(6)
    readers, writers = [0], [0]
    together = [0]
    rounds = max(2, h.volume(10))

    async def read(client: Coordinator) -> None:
        for _ in range(rounds):
            async with client.lock("l")(shared=True):
                readers[0] += 1
                assert not writers[0], "a reader beside a writer"
                together[0] = max(together[0], readers[0])
                await asyncio.sleep(h.ttl / 50)
                readers[0] -= 1

    async def write(client: Coordinator) -> None:
        for _ in range(rounds):
            async with client.lock("l")():
                writers[0] += 1
                assert writers[0] == 1, "two writers"
                assert not readers[0], "a writer beside a reader"
                await asyncio.sleep(0)
                writers[0] -= 1

    await h.in_time(
        asyncio.gather(*map(read, clients[:4]), *map(write, clients[4:])),
        "readers and writers had their rounds",
        within=h.crowd_patience,
    )
    async with clients[0].lock("s")(shared=True), clients[1].lock("s")(shared=True, timeout=1):
        assert await clients[2].lock("s").try_acquire() is None
    assert await clients[2].lock("s").try_acquire()
    await check_permits(h, clients)


async def check_permits(h: Harness, clients: list[Coordinator]) -> None:
    """Six clients take turns at two permits."""
    inside, most = [0], [0]

    async def use(client: Coordinator) -> None:
        for _ in range(max(2, h.volume(5))):
            async with client.semaphore("p", 2)() as grant:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                await client.storage.upsert("p", b"", fence=grant)
                inside[0] -= 1

    await h.in_time(
        asyncio.gather(*map(use, clients)), "all had their permits", within=h.crowd_patience
    )
    assert most[0] == 2, f"{most[0]} held at once"
    async with clients[0].semaphore("p", 2)(), clients[1].semaphore("p", 2)():
        assert await clients[2].semaphore("p", 2).try_acquire() is None
    assert await clients[2].semaphore("p", 2).try_acquire()
