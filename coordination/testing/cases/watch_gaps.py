"""Cases W3 to W6, W17 and W19: cuts, restarts, forgotten history, and watches that only wait."""

import asyncio

from coordination.coordinator import Coordinator
from coordination.errors import Compacted
from coordination.testing.case import Trait, case
from coordination.testing.cases.storage import fetched
from coordination.testing.cases.watches import check_order, values
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.seen import seen, seen_later
from coordination.testing.store import Ability
from coordination.types import ValueEvent

WRITES = 100


async def write_all(client: Coordinator, begin: int = 1) -> None:
    """Write 100 values, one after the other, each larger than the last."""
    for number in range(begin, begin + WRITES):
        await client.storage.upsert("k", str(number).encode())


def check_complete(h: Harness, events: list[ValueEvent], first: int, last: int) -> None:
    """All changes are there, or, without history, the last one; order holds in any case."""
    check_order(events)
    got = [int(value) for value in values(events) if value]
    assert got == sorted(got), "a value went back"
    assert got[-1] == last
    if h.capabilities.history:
        assert set(got) >= set(range(first, last + 1)), "a change is missing"


@case(busy=True)
async def w3_no_gap_after_a_read(h: Harness) -> None:
    """A watch from the revision of a read misses nothing that others write meanwhile."""
    a, b = await h.make_clients(2)
    await a.storage.put("k", b"0")
    writing = h.start(write_all(a))
    await asyncio.sleep(0)
    record = await fetched(b, "k")
    assert record.value != str(WRITES).encode(), "the writer was done before the read"
    async with seen_later(b.storage.watch("k", after=record.mod_revision)) as events:
        await h.in_time(writing, within=h.crowd_patience)
        await h.until(lambda: values(events)[-1:] == [str(WRITES).encode()], "the last arrives")
        check_complete(h, events, int(record.value) + 1, WRITES)
        if not h.capabilities.history:
            missing = WRITES - int(record.value) - len(events)
            assert missing == 0 or any(event.coalesced for event in events)


@case(Ability.CUT, busy=True)
async def w4_a_cut_in_mid_watch(h: Harness) -> None:
    """After a cut a watch delivers all changes made meanwhile, or the last one, flagged."""
    a, b = await h.make_clients(2)
    await a.storage.put("k", b"0")
    async with seen(b.storage.watch("k")) as events:
        h.cut(b, refuse=True)
        await write_all(a)
        h.heal(b)
        await h.until(lambda: values(events)[-1] == str(WRITES).encode(), "the last arrives")
        check_complete(h, events, 1, WRITES)
        if not h.capabilities.history:
            assert any(event.coalesced for event in events)


@case(Ability.RESTART)
async def w5_a_restart_in_mid_watch(h: Harness) -> None:
    """A watch goes on after the servers restarted."""
    a, b = await h.make_clients(2)
    await a.storage.put("k", b"0")
    async with seen(b.storage.watch("k")) as events:
        await write_all(a)
        await h.restart_server()
        late = await h.make_client()
        await write_all(late, begin=WRITES + 1)
        await h.until(
            lambda: values(events)[-1] == str(2 * WRITES).encode(),
            "the last arrives",
            within=h.crowd_patience,
        )
        check_complete(h, events, WRITES + 1, 2 * WRITES)


@case(Ability.COMPACT, Trait.HISTORY)
async def w6_forgotten_history(h: Harness) -> None:
    """A watch from a forgotten revision begins with a resync, or raises Compacted when strict."""
    a, b = await h.make_clients(2)
    first = await a.storage.put("k", b"0")
    await write_all(a)
    await h.compact(await h.now_revision())
    async with seen(b.storage.watch("k", after=first)) as events:
        assert events[0].kind == "resync"
        assert values(events[:1]) == [str(WRITES).encode()]
        await a.storage.update("k", b"200")
        await h.until(lambda: values(events)[-1] == b"200", "the watch goes on")
    async with b.storage.watch("k", after=first, strict=True) as strict:
        await refusal(Compacted, anext(strict))


async def _lowest_count(h: Harness) -> int:
    """Return how many watches the servers hold once those of earlier cases have ended."""
    end, lowest = h.now() + h.patience, await h.watches()
    while h.now() < end:
        await asyncio.sleep(h.ttl / 10)
        lowest = min(lowest, await h.watches())
    return lowest


@case(Ability.COUNT_WATCHES)
async def w17_closed_watches_are_freed(h: Harness) -> None:
    """Closing or cancelling a watch frees what the servers hold for it."""
    (b,) = await h.make_clients(1)
    await b.storage.put("k", b"v")
    before = await _lowest_count(h)
    for _ in range(10):
        async with seen(b.storage.watch("k")), seen(b.group("g").watch()):
            pass

    async def wait_for_ever() -> None:
        async with b.storage.watch("other") as watch:
            async for _ in watch:
                pass

    waiting = [h.start(wait_for_ever()) for _ in range(10)]

    async def grown() -> bool:
        return await h.watches() > before

    await h.eventually(grown, "the servers hold the watches")
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)

    async def freed() -> bool:
        return await h.watches() <= before

    await h.eventually(freed, "the servers hold as many watches as before")


@case()
async def w19_an_idle_watch(h: Harness) -> None:
    """A watch that is idle for 10T stays alive and reports progress."""
    a, b = await h.make_clients(2)
    await a.storage.put("k", b"0")
    watch = b.storage.watch("k")
    async with seen(watch) as events:
        began = watch.revision
        end = h.now() + 10 * h.ttl
        while h.now() < end:
            await a.storage.upsert("other", b"v")
            await asyncio.sleep(h.ttl / 2)
        if h.capabilities.history:
            await h.until(lambda: watch.revision > began, "progress is reported")
        assert len(events) == 1, "an idle watch reported changes"
        await a.storage.update("k", b"1")
        await h.until(lambda: values(events)[-1] == b"1", "the watch is alive")
