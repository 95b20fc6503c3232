"""Cases W10 to W13: listeners that raise, are slow, remove themselves, or are added twice."""

import asyncio
from functools import partial

from coordination.coordinator import Coordinator
from coordination.testing.case import case
from coordination.testing.harness import Harness
from coordination.testing.recording import RecordingListener
from coordination.testing.seen import seen

EVENTS = 1000
BATCH = 10
SLOW_S = 0.02


class BrokenListener(RecordingListener):
    """Raises at each call."""

    async def value_changed(self, value: bytes | None, /) -> None:
        await super().value_changed(value)
        raise ValueError("a listener's own fault")


class SlowListener(RecordingListener):
    """Takes its time for each call."""

    def __init__(self, pause_s: float) -> None:
        super().__init__()
        self._pause_s = pause_s

    async def value_changed(self, value: bytes | None, /) -> None:
        await super().value_changed(value)
        await asyncio.sleep(self._pause_s)


class OnceListener(RecordingListener):
    """Removes itself when it hears of the first value."""

    def __init__(self, client: Coordinator) -> None:
        super().__init__()
        self._client = client

    async def value_changed(self, value: bytes | None, /) -> None:
        await super().value_changed(value)
        if value is not None:
            self._client.listeners.remove_value_change_listener("k", self)


@case(busy=True)
async def w10_a_listener_that_raises(h: Harness) -> None:
    """A listener that raises stops neither the others nor later events."""
    a, b = await h.make_clients(2)
    broken, other = BrokenListener(), RecordingListener()
    b.listeners.add_value_change_listener("k", broken)
    b.listeners.add_value_change_listener("k", other)
    for number in range(1, 4):
        value = str(number).encode()
        await a.storage.upsert("k", value)
        await h.until(partial(_both_heard, broken, other, value), f"both hear of {value!r}")


def _both_heard(one: RecordingListener, two: RecordingListener, value: bytes) -> bool:
    return one.last == two.last == value


@case(busy=True)
async def w11_a_slow_reader(h: Harness) -> None:
    """A slow reader's buffer is bounded; it reaches the last state, flagged; others are in time."""
    a, b = await h.make_clients(2)
    count = h.volume(EVENTS)
    begin = h.now()
    await asyncio.gather(*(a.storage.upsert("k", b"0") for _ in range(BATCH)))
    slow = SlowListener(max(SLOW_S, 5 * (h.now() - begin) / BATCH))
    b.listeners.add_value_change_listener("k", slow)
    last = b"last"
    async with b.storage.watch("k") as idle, seen(b.storage.watch("k")) as prompt:
        await asyncio.sleep(0)
        for number in range(0, 2 * count, BATCH):
            await asyncio.gather(*(a.storage.upsert("k", str(number)) for _ in range(BATCH)))
        await a.storage.upsert("k", last)

        def is_last() -> bool:
            record = prompt[-1].record
            return record is not None and record.value == last

        await h.until(is_last, "others are in time")
        await h.until(lambda: slow.last == last, "the slow one reaches the last state")
        assert len(slow.values) < count, "nothing was left out for the slow one"
        kept = []
        async with asyncio.timeout(h.patience):
            async for event in idle:
                kept.append(event)
                if event.record and event.record.value == last:
                    break
        assert len(kept) < 2 * count
        assert any(event.coalesced for event in kept), "what was left out isn't flagged"


@case(busy=True)
async def w12_removing_listeners(h: Harness) -> None:
    """A listener may remove itself; removal counts at once; removing a stranger does nothing."""
    a, b = await h.make_clients(2)
    once, other = OnceListener(b), RecordingListener()
    b.listeners.add_value_change_listener("k", once)
    b.listeners.add_value_change_listener("k", other)
    b.listeners.remove_value_change_listener("k", RecordingListener())
    b.listeners.remove_value_change_listener("never", other)
    await a.storage.put("k", b"1")
    await h.until(lambda: once.last == other.last == b"1", "both hear the first change")
    await a.storage.update("k", b"2")
    await h.until(lambda: other.last == b"2", "the other hears the second change")
    assert once.last == b"1"
    b.listeners.remove_value_change_listener("k", other)
    async with seen(b.storage.watch("k")) as events:
        await a.storage.update("k", b"3")
        await h.until(lambda: len(events) == 2, "a watch sees the third change")
    await asyncio.sleep(h.ttl / 10)
    assert other.last == b"2"


@case(busy=True)
async def w13_a_listener_is_added_once(h: Harness) -> None:
    """A listener that is added twice is called once for a change."""
    a, b = await h.make_clients(2)
    listener = RecordingListener()
    for _ in range(2):
        b.listeners.add_value_change_listener("k", listener)
        b.group("g").add_listener(listener)
    await h.until(lambda: listener.groups and listener.values, "the first state is heard")
    await a.storage.put("k", b"1")
    await a.group("g").join("a")
    await h.until(
        lambda: listener.last == b"1" and {"a"} in listener.groups, "the changes are heard"
    )
    await asyncio.sleep(h.ttl / 10)
    assert listener.values.count(b"1") == 1
    assert listener.groups.count(frozenset({"a"})) == 1
