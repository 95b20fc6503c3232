"""Cases W1, W2, W7 to W9, W13 to W16 and W18: what watches and listeners report without a fault."""

import asyncio

from coordination.testing.case import Trait, case
from coordination.testing.harness import Harness
from coordination.testing.recording import RecordingListener
from coordination.testing.seen import seen, seen_later
from coordination.testing.store import Ability
from coordination.types import ValueEvent


def values(events: list[ValueEvent]) -> list[bytes | None]:
    """Return the value that each event reports."""
    return [event.record.value if event.record else None for event in events]


def check_order(events: list[ValueEvent]) -> None:
    """Revisions never go back, and no event comes twice."""
    revisions = [event.revision for event in events]
    assert revisions == sorted(revisions), revisions
    changes = [(event.key, event.revision) for event in events if event.kind in ("put", "delete")]
    assert len(set(changes)) == len(changes), "an event came twice"


@case()
async def w1_watches_begin_with_the_state(h: Harness) -> None:
    """A watch begins with the present state, or only with what is later than a revision."""
    a, b = await h.make_clients(2)
    await a.storage.put("k", b"1")
    async with seen(b.storage.watch("k")) as events:
        assert events[0].kind == "snapshot"
        assert values(events[:1]) == [b"1"]
    async with seen(b.storage.watch("other")) as empty:
        assert empty[0].kind == "snapshot"
        assert values(empty[:1]) == [None]
    after = await a.storage.update("k", b"2")
    async with seen_later(b.storage.watch("k", after=after)) as later:
        await a.storage.update("k", b"3")
        await h.until(lambda: values(later)[-1:] == [b"3"], "the later change arrives")
        assert all(event.revision > after for event in later)


@case()
async def w2_changes_arrive_in_order(h: Harness) -> None:
    """Puts, updates and deletes arrive in the order of revisions, each once."""
    a, b = await h.make_clients(2)
    async with seen(b.storage.watch("k")) as events:
        await a.storage.put("k", b"1")
        await h.until(lambda: values(events)[-1] == b"1", "the put arrives")
        await a.storage.update("k", b"2")
        await h.until(lambda: values(events)[-1] == b"2", "the update arrives")
        await a.storage.delete("k")
        await h.until(lambda: values(events)[-1] is None, "the delete arrives")
        check_order(events)
        assert values(events) == [None, b"1", b"2", None]
        assert [event.kind for event in events] == ["snapshot", "put", "put", "delete"]


@case(Ability.CUT)
async def w7_a_key_that_never_was(h: Harness) -> None:
    """The creation of a new key is delivered; a short life during a cut is delivered or flagged."""
    a, b = await h.make_clients(2)
    async with seen(b.storage.watch("k")) as events:
        h.cut(b, refuse=True)
        await a.storage.put("k", b"short")
        await a.storage.delete("k")
        h.heal(b)
        await h.until(
            lambda: b"short" in values(events) or any(event.coalesced for event in events),
            "the short life is delivered or flagged",
        )
        await a.storage.put("k", b"made")
        await h.until(lambda: values(events)[-1] == b"made", "the creation arrives")
        check_order(events)


@case()
async def w8_an_equal_value_is_a_change(h: Harness) -> None:
    """A key that is deleted and made again with the same value is visible by its revision."""
    a, b = await h.make_clients(2)
    first = await a.storage.put("k", b"same")
    async with seen(b.storage.watch("k")) as events:
        await a.storage.delete("k")
        again = await a.storage.put("k", b"same")

        def returned() -> bool:
            record = events[-1].record
            return record is not None and record.mod_revision == again

        await h.until(returned, "the new key arrives")
        assert events[-1].revision >= again > first


@case()
async def w9_sets_of_keys(h: Harness) -> None:
    """A key set's listener hears of children made and deleted, not of values or grandchildren."""
    a, b = await h.make_clients(2)
    listener = RecordingListener()
    heard = listener.key_sets
    b.listeners.add_key_set_change_listener("n", listener)
    await a.storage.put("n/a", b"1")
    await h.until(lambda: heard[-1:] == [frozenset({"n/a"})], f"a child is made: {heard}")
    count = len(heard)
    await a.storage.update("n/a", b"2")
    await a.storage.put("n/a/deep", b"1")
    await a.storage.put("nb", b"1")
    await a.storage.put("n/b", b"1")
    await h.until(lambda: heard[-1] == {"n/a", "n/b"}, f"a second child is made: {heard}")
    assert len(heard) == count + 1, heard
    await a.storage.delete("n/a")
    await h.until(lambda: heard[-1] == {"n/b"}, f"a child is deleted: {heard}")


@case(busy=True)
async def w14_thousands_of_watches(h: Harness) -> None:
    """1,000 watches on keys of their own and 1,000 on one key each fire once for a change."""
    a, b = await h.make_clients(2)
    count = h.volume(1000)
    own = [RecordingListener() for _ in range(count)]
    one = [RecordingListener() for _ in range(count)]
    for number in range(count):
        b.listeners.add_value_change_listener(f"own/{number}", own[number])
        b.listeners.add_value_change_listener("one", one[number])
    await h.until(
        lambda: all(listener.values for listener in own + one),
        "all hear the first state",
        within=h.crowd_patience,
    )
    await a.storage.put("one", b"v")
    for begin in range(0, count, 100):
        await asyncio.gather(
            *(a.storage.put(f"own/{n}", b"v") for n in range(begin, min(begin + 100, count)))
        )
    await h.until(
        lambda: all(listener.last == b"v" for listener in own + one),
        "all of them fire",
        within=h.crowd_patience,
    )
    assert all(listener.values == [None, b"v"] for listener in own + one)


@case()
async def w15_own_writes(h: Harness) -> None:
    """A watcher sees the writes of its own client."""
    a = await h.make_client()
    async with seen(a.storage.watch("k")) as events:
        await a.storage.put("k", b"mine")
        await h.until(lambda: values(events)[-1] == b"mine", "the own write arrives")


@case(Trait.HISTORY, busy=True)
async def w16_order_across_keys(h: Harness) -> None:
    """Changes of several keys arrive in the order of their revisions."""
    a, c, b = await h.make_clients(3)
    made: list[int] = []
    async with seen_later(b.storage.watch_prefix("n/")) as events:
        for turn in range(20):
            writer = a if turn % 2 else c
            made.append(await writer.storage.put(f"n/{turn % 7}-{turn}", b"v"))
        await h.until(
            lambda: sum(event.kind == "put" for event in events) == 20, "all changes arrive"
        )
        assert [event.revision for event in events if event.kind == "put"] == made


@case(busy=True)
async def w18_list_then_watch(h: Harness) -> None:
    """No key is lost between a list and a watch that goes on from its revision."""
    a, b = await h.make_clients(2)

    async def write() -> None:
        for number in range(100):
            await a.storage.put(f"n/{number:03}", b"v")

    writing = h.start(write())
    await asyncio.sleep(0)
    revision, records = await b.storage.snapshot("n/")
    known = set(records)
    async with seen_later(b.storage.watch_prefix("n/", after=revision)) as events:
        await h.in_time(writing, within=h.crowd_patience)
        await h.until(
            lambda: len(known | {event.key for event in events if event.record}) == 100,
            "every key is listed or watched",
        )
        check_order(events)
