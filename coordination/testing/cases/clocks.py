"""Cases C1 to C5: wall clocks that jump, processes that stop, event loops that are held."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from unittest import mock

from coordination.errors import Fenced, SessionLost
from coordination.testing.case import Trait, case
from coordination.testing.child import SAYS
from coordination.testing.harness import Harness
from coordination.testing.store import Ability
from coordination.types import SessionState
from runtime.asyncio_clock import of_running_loop

HOUR_S = 3600.0
_CHILD = f"{__package__.rpartition('.')[0]}.child"


@case()
async def c1_the_clients_wall_clock_jumps(h: Harness) -> None:
    """A step of the client's wall clock by an hour changes no session and stops no write."""
    a, b = await h.make_clients(2)
    await a.group("g").join("a")
    # A driver may have threads of its own, which ask for the time too.
    clock = of_running_loop()
    opened, before_s = a.session.id, clock.wall_ms() / 1000 - clock.monotonic()
    for step in (HOUR_S, -HOUR_S):

        def stepped(step: float = step) -> float:
            return before_s + clock.monotonic() + step

        def stepped_ns(step: float = step) -> int:
            return int(stepped(step) * 1e9)

        with mock.patch("time.time", stepped), mock.patch("time.time_ns", stepped_ns):
            await asyncio.sleep(h.ttl)
            assert h.now() < a.session.deadline <= h.now() + a.session.ttl
            assert await b.group("g").membership_list() == {"a"}
            await a.storage.upsert("k", f"{step}")
    assert (a.session.id, a.session.state) == (opened, SessionState.CONNECTED)


@case(Ability.STEP_CLOCK, Trait.STEADY_CLOCK)
async def c2_the_servers_wall_clock_jumps(h: Harness) -> None:
    """A step of the servers' wall clock ends no session."""
    clients = await h.make_clients(5)
    for number, client in enumerate(clients):
        await client.group("g").join(f"m{number}")
    for step in (HOUR_S, -HOUR_S):
        await h.step_clock(step)
        await asyncio.sleep(h.ttl)
        members = await clients[0].group("g").membership_list()
        assert members == {f"m{number}" for number in range(5)}
    assert all(client.session.state is SessionState.CONNECTED for client in clients)


@case(Ability.OTHER_PROCESS)
async def c3_a_process_is_stopped(h: Harness) -> None:
    """A process that SIGSTOP held for 3T is LOST when it goes on, before any write succeeds."""
    b = await h.make_client()
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        _CHILD,
        h.store.client_url(),
        json.dumps({"namespace": h.namespace, "ttl": h.ttl}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=Path.cwd(),
    )
    try:
        assert child.stdout is not None
        assert child.stdin is not None
        assert await h.in_time(_said(child.stdout), within=h.crowd_patience) == "holds"
        child.send_signal(signal.SIGSTOP)
        child.stdin.write(b"write\n")
        await asyncio.sleep(3 * h.ttl)
        async with b.lock("l")(timeout=h.patience):
            child.send_signal(signal.SIGCONT)
            assert await h.in_time(_said(child.stdout)) in ("SessionLost", "Fenced")
        assert await b.storage.fetch("k") is None
    finally:
        child.kill()
        await child.wait()


@case()
async def c4_an_event_loop_is_held(h: Harness) -> None:
    """After its event loop was held for 2T, a client is LOST before a guarded write succeeds."""
    held = await h.make_remote_client()
    b = await h.make_client()
    grant = await held.call(lambda c: c.lock("l").try_acquire())
    assert grant
    await h.freeze_client(held)
    writes = [
        h.start(held.call(lambda c: c.storage.put("k", b"late", fence=grant))) for _ in range(3)
    ]
    await asyncio.sleep(2 * h.ttl)
    h.thaw_client(held)
    for write in writes:
        try:
            await h.in_time(write)
        except (SessionLost, Fenced):
            continue
        raise AssertionError("a guarded write succeeded after the loop was held")
    assert grant.lost.is_set()
    assert await b.storage.fetch("k") is None


async def _said(output: asyncio.StreamReader) -> str:
    """Return the child's next word; the rest of its output is its log."""
    while line := (await output.readline()).decode():
        if line.startswith(SAYS):
            return line.removeprefix(SAYS).strip()
    raise AssertionError("the child ended")


@case(Trait.CLOCK_SKEW, Ability.SKEW_REPLICAS)
async def c5_a_replicas_clock_is_off(h: Harness) -> None:
    """A replica whose clock is off by a second ends a session when the declaration says.

    The session is written by the true clock and judged by one that is off.
    """
    for skew in (1.0, -1.0):
        a, b = await h.make_clients(2)
        await a.group("g").join("a")
        deadline = a.session.deadline
        await h.kill_client(a)
        await h.store.skew_replica(skew)
        try:
            while await b.group("g").membership_list():
                assert h.now() < deadline + h.patience, "the session ended later than declared"
                await asyncio.sleep(h.ttl / 20)
            assert h.now() >= deadline, "the session ended before its deadline"
        finally:
            await h.store.skew_replica(0.0)
