"""Cases P1 to P9: links that break, servers that stop, leaders that change."""

import asyncio
from contextlib import suppress
from functools import partial

from coordination.coordinator import Coordinator
from coordination.errors import CoordinationError, OutcomeUnknown, SessionLost, Unavailable
from coordination.testing.case import Trait, case
from coordination.testing.cases.elections import candidates, leads
from coordination.testing.cases.groups import data_of
from coordination.testing.cases.storage import fetched
from coordination.testing.cases.watches import check_order, values
from coordination.testing.harness import Harness
from coordination.testing.seen import seen
from coordination.testing.store import Ability
from coordination.types import SessionState

FLAPS = 100


@case(Ability.CUT)
async def p1_one_client_is_cut_off(h: Harness) -> None:
    """A client that is cut off from all servers is LOST by its deadline; another is unaffected."""
    a, b = await h.make_clients(2)
    for client, name in ((a, "a"), (b, "b")):
        await client.group("g").join(name)
    h.cut(a)
    await h.in_time(a.session.wait_lost(), "LOST by its own deadline")
    assert b.session.state is SessionState.CONNECTED
    await b.storage.put("k", b"v")

    async def alone() -> bool:
        return await b.group("g").membership_list() == {"b"}

    await h.eventually(alone, "only the other member is left")


@case(Ability.ISOLATE, Trait.LINEARIZABLE_READS)
async def p2_the_minority_refuses(h: Harness) -> None:
    """A server that is cut off from the others makes no change and serves no stale read."""
    a = await h.make_client()
    await a.storage.put("k", b"old")
    early = {number: await _at_server(h, number) for number in range(3)}
    number = await h.isolate_server()
    rest = await h.make_client(without=number)
    await rest.storage.update("k", b"new")
    for lonely in (early[number], await _at_server(h, number)):
        if lonely is not None:
            await _refuses(h, lonely)
    assert (await fetched(rest, "k")).value == b"new"


async def _at_server(h: Harness, number: int) -> Coordinator | None:
    """Open a client that reaches one server only; None: that server doesn't take it."""
    try:
        return await h.make_client(server=number)
    except (Unavailable, OutcomeUnknown):
        return None


async def _refuses(h: Harness, lonely: Coordinator) -> None:
    """Check that a client of the server that is cut off reads nothing old and writes nothing."""
    with suppress(Unavailable, SessionLost):
        record = await h.in_time(lonely.storage.fetch("k"))
        assert record is not None
        assert record.value == b"new", "a stale read"
    try:
        await h.in_time(lonely.storage.update("k", b"lonely"))
    except (Unavailable, OutcomeUnknown, SessionLost):
        return
    raise AssertionError("the minority made a change")


async def write_until(client: Coordinator, stop: asyncio.Event, made: list[str]) -> list[str]:
    """Write keys until told to stop; return those whose outcome is unknown."""
    unknown = []
    number = 0
    while not stop.is_set():
        key = f"n/{number:05}"
        number += 1
        try:
            await client.storage.put(key, b"v")
            made.append(key)
        except CoordinationError as error:
            if error.outcome != "not_applied":
                unknown.append(key)
        await asyncio.sleep(0)
    return unknown


@case(Ability.FAILOVER, Trait.LEADER_FAILOVER)
async def p3_failover_under_load(h: Harness) -> None:
    """After the leading server dies every acknowledged write is there, and sessions live."""
    # A session lives when the failover is shorter than its ttl.
    a, b = [await h.make_client(ttl=5 * h.ttl) for _ in range(2)]
    await b.group("g").join("b")
    stop, made = asyncio.Event(), list[str]()
    writing = h.start(write_until(a, stop, made))
    await h.until(lambda: len(made) >= 20, "writes are acknowledged")
    await h.failover_leader()
    before = len(made)
    await h.until(lambda: len(made) >= before + 20, "writes go on", within=h.crowd_patience)
    stop.set()
    unknown = await h.in_time(writing)
    present = {record.key: record.version async for record in b.storage.list("n/")}
    assert set(made) <= set(present), "an acknowledged write is missing"
    assert set(present) <= set(made) | set(unknown), "a refused write is there"
    assert set(present.values()) == {1}, "a write was made twice"
    assert b.session.state is SessionState.CONNECTED
    assert await a.group("g").membership_list() == {"b"}


@case(Ability.FAILOVER, Trait.LEADER_FAILOVER)
async def p4_failover_in_mid_watch(h: Harness) -> None:
    """A watch goes on over a failover: no gap, no step back."""
    a, b = [await h.make_client(ttl=5 * h.ttl) for _ in range(2)]
    await a.storage.put("k", b"0")
    async with seen(b.storage.watch("k")) as events:
        for number in range(1, 41):
            if number == 20:
                await h.failover_leader()
            await h.eventually(partial(_written, a, number), "a write succeeds", within=30.0)
        await h.until(
            lambda: values(events)[-1] == b"40", "the last arrives", within=h.crowd_patience
        )
        check_order(events)
        got = [int(value) for value in values(events) if value]
        assert got == sorted(got)
        if h.capabilities.history:
            assert set(got) == set(range(41))


async def _written(client: Coordinator, number: int) -> bool:
    try:
        await client.storage.upsert("k", str(number).encode())
    except CoordinationError:
        return False
    return True


@case(Ability.FAILOVER, Trait.LEADER_FAILOVER)
async def p5_failover_ends_no_session_early(h: Harness) -> None:
    """After a failover a silent session may end late, but never before its deadline."""
    # The observer's session outlasts the failover.
    a, b = await h.make_client(), await h.make_client(ttl=5 * h.ttl)
    await a.group("g").join("a")
    deadline = a.session.deadline
    await h.kill_client(a)
    await h.failover_leader()
    late = 2 * h.patience + h.crowd_patience
    while True:
        try:
            members = await b.group("g").membership_list()
        except CoordinationError:
            assert h.now() < deadline + late, "no server answers after the failover"
            await asyncio.sleep(h.ttl / 20)
            continue
        now = h.now()
        if now < deadline:
            assert members == {"a"}, "the session ended before its deadline"
        if not members:
            break
        assert now < deadline + late, "the session never ended"
        await asyncio.sleep(h.ttl / 20)


@case(Ability.CUT)
async def p6_a_one_way_cut(h: Harness) -> None:
    """Requests that arrive while their replies are lost are made once, whatever they are."""
    a, b = await h.make_clients(2)
    term = await a.election("e").nominate("a")
    assert term
    await b.election("e").nominate("b")

    async def is_put() -> bool:
        return await b.storage.fetch("k") is not None

    async def is_joined() -> bool:
        return "a" in await b.group("g").membership_list()

    put = a.storage.put("k", b"v", request_id=f"once-{h.namespace}")
    await h.in_time(_settled(await h.drop_next_reply(a, put, is_put)))
    join = a.group("g").join("a", b"1")
    await h.in_time(_settled(await h.drop_next_reply(a, join, is_joined)))
    resign = a.election("e").resign("a", token=term.token)
    await h.in_time(_settled(await h.drop_next_reply(a, resign, lambda: leads(b, "e", "b"))))
    await h.in_time(a.storage.put("k", b"v", request_id=f"once-{h.namespace}"))
    await h.in_time(a.group("g").join("a", b"1"))
    await h.in_time(a.election("e").resign("a", token=term.token))
    assert (await fetched(b, "k")).version == 1
    assert await data_of(b, "g") == {"a": b"1"}
    assert await candidates(b, "e") == ["b"]


async def _settled(task: asyncio.Task[object]) -> None:
    """Wait for a task that may end with OutcomeUnknown."""
    with suppress(OutcomeUnknown):
        await task


@case(Ability.SEVERAL_ENDPOINTS)
async def p7_a_dead_endpoint(h: Harness) -> None:
    """When nobody listens at the first address, the next one is used within a second."""
    a = await h.in_time(
        h.make_client(dead_endpoint_first=True), "the next address serves", within=1.0 + h.ttl
    )
    await a.storage.put("k", b"v")
    assert (await fetched(a, "k")).value == b"v"


@case(Ability.RESTART)
async def p8_the_whole_cluster_restarts(h: Harness) -> None:
    """Data, tokens and the order of the log are kept over a restart of all servers."""
    a = await h.make_client()
    made = await a.storage.put("k", b"1")
    grant = await a.lock("l").try_acquire()
    assert grant
    await h.restart_server()
    b = await h.make_client()
    record = await fetched(b, "k")
    assert (record.value, record.mod_revision, record.version) == (b"1", made, 1)
    changed = await b.storage.update("k", b"2")
    assert changed > made
    await h.close_client(a)
    async with b.lock("l")(timeout=h.patience + h.crowd_patience) as later:
        assert later.token > grant.token


@case(Ability.CUT)
async def p9_a_flapping_link(h: Harness) -> None:
    """A link that breaks a hundred times leaves no tasks, connections or watches behind."""
    a, b = await h.make_clients(2)
    async with seen(a.storage.watch("k")) as events:
        await b.storage.put("k", b"0")
        await h.until(lambda: values(events)[-1] == b"0", "the watch works")
        tasks = len(asyncio.all_tasks())
        connections = h.connections(a)
        for flap in range(FLAPS):
            h.cut(a, refuse=True)
            await asyncio.sleep(0.005 if flap % 10 else 0.02)
            h.heal(a)
            await asyncio.sleep(0.005 if flap % 10 else h.ttl / 5)
        await b.storage.update("k", b"1")
        await h.until(lambda: values(events)[-1] == b"1", "the watch still works")
        await h.until(lambda: len(asyncio.all_tasks()) <= tasks + 4, "no task is left behind")
        await h.until(lambda: h.connections(a) <= connections + 2, "no connection is left behind")
        check_order(events)
    if a.session.state is SessionState.CONNECTED:
        await h.in_time(a.storage.upsert("k", b"2"), "the client is usable")
