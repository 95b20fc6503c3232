"""Heartbeats from a thread: a busy loop keeps its session, and a late one never does.

Rule: these tests run in real time, since a loop that is held is what they are about.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from coordination.connect import Connecting, connect
from coordination.coordinator import Coordinator
from coordination.errors import ConfigError, KeyExists, SessionClosed, SessionLost, Unavailable
from coordination.heartbeat_thread import THREAD, ThreadedBackend
from coordination.session_deadline import SessionDeadline
from coordination.sync import connect_sync
from coordination.types import SessionState
from tests.unit.coordination.virtual_loop import VirtualClock, virtual

TTL_S = 0.6


def threads() -> int:
    return sum(thread.name == THREAD for thread in threading.enumerate())


def threaded(store: str, *, heartbeat_thread: bool = True) -> Connecting:
    return connect(f"memory://{store}", ttl=TTL_S, heartbeat_thread=heartbeat_thread)


@asynccontextmanager
async def none_left() -> AsyncIterator[None]:
    """The body leaves no thread behind."""
    assert threads() == 0
    yield
    assert threads() == 0


@pytest.mark.parametrize("heartbeat_thread", [True, False])
async def test_a_loop_that_is_held_keeps_its_session_only_with_the_thread(
    heartbeat_thread: bool,
) -> None:
    with connect_sync("memory://held") as observer:
        client = await threaded("held", heartbeat_thread=heartbeat_thread)
        await client.group("g").join("m")
        grant = await client.lock("l").acquire()
        time.sleep(2.5 * TTL_S)  # noqa: ASYNC251 - the loop is held
        seen = observer.group("g").membership_list()
        if heartbeat_thread:
            assert seen == {"m"}
            assert client.session.state is SessionState.CONNECTED
            assert client.session.deadline > time.clock_gettime(time.CLOCK_BOOTTIME)
            await client.storage.put("k", b"", fence=grant)
        else:
            assert seen == set()
            with pytest.raises(SessionLost):
                await client.storage.put("k", b"", fence=grant)
        await client.aclose()


async def test_a_held_loop_that_is_cut_off_writes_nothing_late() -> None:
    client = await threaded("cut")
    grant = await client.lock("l").acquire()
    cut(client)
    time.sleep(1.5 * TTL_S)  # noqa: ASYNC251 - the loop is held
    with pytest.raises(SessionLost):
        await client.storage.put("k", b"late", fence=grant)
    assert grant.lost.is_set()
    await client.aclose()


async def test_the_program_learns_of_failed_and_of_refused_heartbeats() -> None:
    client = await threaded("told")

    async def note() -> list[SessionState]:
        return [state async for state in client.session.events()]

    noting = asyncio.create_task(note())
    heal = cut(client)
    await asyncio.sleep(TTL_S / 2)
    assert client.session.state is SessionState.SUSPENDED
    heal()
    await asyncio.sleep(TTL_S / 2)
    assert client.session.state is SessionState.CONNECTED
    await client.backend.end_session(client.session.id)
    await asyncio.wait_for(client.session.wait_lost(), 5.0)
    assert await noting == [
        SessionState.CONNECTED,
        SessionState.SUSPENDED,
        SessionState.CONNECTED,
        SessionState.LOST,
    ]
    await client.reopen()
    await client.storage.put("k", b"")
    await client.aclose()


async def test_all_calls_cross_over_and_come_back() -> None:
    async with none_left(), threaded("calls") as a, threaded("calls") as b:
        first = await a.storage.put("k/1", b"1")
        with pytest.raises(KeyExists) as exists:
            await b.storage.put("k/1", b"2")
        assert exists.value.record is not None
        assert exists.value.record.mod_revision == first
        async with b.storage.watch_prefix("k") as events:
            assert (await anext(events)).kind == "snapshot"
            await a.storage.txn().put("k/2", b"").update("k/1", b"2").commit()
            assert {(await anext(events)).key for _ in range(2)} == {"k/1", "k/2"}
        assert [record.key async for record in a.storage.list("k", page=1)] == ["k/1", "k/2"]
        async for record in a.storage.list("k", page=1):
            assert record.key == "k/1"
            break
        assert await a.storage.fetch("none") is None
        async with a.election("s").campaign("A", b"1") as term:
            await term.proclaim(b"2")
            leader = await b.election("s").get_leader()
            assert leader is not None
            assert (leader.data, leader.token) == (b"2", term.token)
            waiting = asyncio.create_task(b.lock("l").acquire())
            assert await (await waiting).release()
        assert await b.lock("l").break_() is False


async def test_closing_ends_the_thread_and_what_waits() -> None:
    async with none_left():
        client = await threaded("closing")
        async with client.storage.watch("k") as events:
            await anext(events)
            waiting = asyncio.create_task(anext(events))
            await asyncio.sleep(0.05)
            assert threads() == 1
            await client.aclose()
            await client.aclose()
            with pytest.raises(SessionClosed):
                await waiting
        with pytest.raises(Unavailable):
            await client.backend.get("k")


async def test_what_fails_at_the_start_leaves_no_thread() -> None:
    async with none_left():
        with pytest.raises(ConfigError, match="no option"):
            await connect("memory://x", heartbeat_thread=True, colour="red")
        with pytest.raises(ConfigError, match="safety_margin"):
            await connect("memory://x", heartbeat_thread=True, safety_margin=99.0)
        with pytest.raises(Unavailable):
            await connect("etcd+http://127.0.0.1:1", heartbeat_thread=True, request_timeout=0.3)


@virtual
async def test_it_takes_no_clock_of_a_simulation() -> None:
    with pytest.raises(ConfigError, match="real time"):
        connect("memory://x", heartbeat_thread=True, clock=VirtualClock())


@virtual
async def test_a_deadline_that_has_passed_stays_passed() -> None:
    clock = VirtualClock()
    begun = clock.monotonic()
    deadline = SessionDeadline(clock, begun, 10.0, 1.0)
    clock.pause(8.9)
    assert not deadline.passed
    deadline.extend(begun + 5.0, 20.0)
    assert (deadline.at_s, deadline.ttl_s) == (begun + 24.0, 20.0)
    deadline.extend(begun + 1.0, 20.0)
    assert deadline.at_s == begun + 24.0, "an older heartbeat takes nothing away"
    clock.pause(15.2)
    deadline.extend(begun + 24.0, 20.0)
    assert deadline.passed, "the acknowledgement came too late, though nobody had asked before"


def cut(client: Coordinator):
    """Let no heartbeat reach the store; returns what ends the cut."""
    backend = client.backend
    assert isinstance(backend, ThreadedBackend)
    real = backend._real

    async def unreachable(*_: object) -> float:
        raise Unavailable("cut off")

    real.renew = unreachable

    def heal() -> None:
        del real.renew

    return heal
