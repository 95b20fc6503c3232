"""Cases A1 to A7: what a client leaves behind, refuses, and survives."""

import asyncio
import gc
import pickle  # noqa: TID251 - errors must survive it between processes of a caller
import threading
from pathlib import Path

from coordination import errors
from coordination.coordinator import Coordinator
from coordination.errors import AuthFailed, ConfigError, CoordinationError
from coordination.testing.case import case
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.store import Ability
from coordination.types import Member, Record, Revision, SessionId, Token

OPENINGS = 200


def descriptors() -> int:
    """Return how many files this process has open; 0 where the system doesn't say."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


@case(busy=True)
async def a1_nothing_is_left_behind(h: Harness) -> None:
    """200 clients that open and close leave no task, thread or open file behind."""

    async def open_and_close() -> None:
        client = await h.make_client()
        await client.group("g").join("a")
        await h.close_client(client)

    for _ in range(3):
        await open_and_close()
    gc.collect()
    before = (len(asyncio.all_tasks()), threading.active_count(), descriptors())
    for _ in range(h.volume(OPENINGS)):
        await open_and_close()
    gc.collect()

    def nothing_more() -> bool:
        now = (len(asyncio.all_tasks()), threading.active_count(), descriptors())
        return all(later <= earlier + 3 for later, earlier in zip(now, before, strict=True))

    await h.until(nothing_more, f"as much is open as before: {before}")


@case()
async def a2_close_ends_pending_calls(h: Harness) -> None:
    """Calls that are pending when the client closes fail, and none hangs."""
    a, b = await h.make_clients(2)
    assert await b.lock("l").try_acquire()
    await b.election("e").nominate("b")

    async def next_event() -> None:
        async with a.storage.watch("k") as watch:
            async for event in watch:
                if event.kind != "snapshot":
                    raise AssertionError("nobody changed the key")

    pending = [
        h.start(a.lock("l")(timeout=None).__aenter__()),
        h.start(a.election("e").campaign("a").__aenter__()),
        h.start(next_event()),
        h.start(a.session.wait_lost()),
    ]
    await asyncio.sleep(h.ttl / 5)
    assert not any(task.done() for task in pending)
    await h.in_time(a.aclose(), "close returns")
    results = await h.in_time(
        asyncio.gather(*pending, return_exceptions=True), "the pending calls end"
    )
    for call in results[:2]:
        assert isinstance(call, CoordinationError), call
    assert await b.lock("l").holder() is not None


@case()
async def a3_unknown_options(h: Harness) -> None:
    """An option that nobody knows is refused by its name."""
    error = await refusal(ConfigError, h.make_client(options={"no_such_option": "1"}))
    assert "no_such_option" in str(error)


@case(Ability.CREDENTIALS)
async def a4_wrong_credentials(h: Harness) -> None:
    """Wrong credentials are refused when the client opens, at once."""
    await refusal(AuthFailed, h.in_time(h.make_client(wrong_credentials=True)))


def one_of_each_error() -> list[CoordinationError]:
    """Return an instance of every public error class, with what it carries."""
    record = Record("k", b"v", Revision(1), Revision(2), 2, None)
    member = Member("a", b"d", Token(3), SessionId("s"))
    made: list[CoordinationError] = [
        errors.KeyExists("m", record=record, index=1),
        errors.RevisionMismatch("m", current=Revision(5)),
        errors.Fenced("m", current_token=Token(4)),
        errors.MemberExists("m", member=member),
        errors.ValueTooLarge("m", limit=9),
        errors.Compacted("m", oldest=Revision(7)),
        errors.NotSupported("m", capability="txn"),
    ]
    known = {type(error) for error in made}
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    others = [kind for kind in found if issubclass(kind, CoordinationError) and kind not in known]
    return made + [kind("m") for kind in others]


@case()
async def a5_errors_travel(h: Harness) -> None:
    """All errors have one base, say their outcome, and survive pickling with what they carry."""
    assert h.namespace
    made = one_of_each_error()
    assert len(made) > 15
    for error in made:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 -- its own bytes
        assert type(copy) is type(error)
        assert str(copy) == str(error)
        assert vars(copy) == vars(error)
        assert error.outcome in ("applied", "not_applied", "unknown")
        assert error.retryable in (True, False)


@case(busy=True)
async def a6_no_task_is_destroyed(h: Harness) -> None:
    """No client leaves a task that asyncio destroys, or an exception that nobody saw."""
    complaints: list[str] = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: complaints.append(str(context["message"])))
    try:
        for turn in range(5):
            a = await h.make_client()
            b = await h.make_client()
            await b.lock("l").try_acquire()
            waiting = asyncio.ensure_future(a.lock("l")().__aenter__())
            watching = a.storage.watch("k")
            await watching.__aenter__()
            await asyncio.sleep(h.ttl / 20)
            if turn % 2:
                waiting.cancel()
            if turn == 3:
                await h.kill_client(a)
            else:
                await h.close_client(a)
            await asyncio.gather(waiting, return_exceptions=True)
            await h.close_client(b)
            del a, b, waiting, watching
            gc.collect()
            await asyncio.sleep(0)
        gc.collect()
        await asyncio.sleep(h.ttl / 10)
    finally:
        loop.set_exception_handler(before)
    assert not complaints, complaints


async def _hold(client: Coordinator, inside: list[int], number: int) -> None:
    """Hold lock `l` for a moment, alone."""
    async with client.lock("l")():
        assert not inside, "two hold the lock"
        inside.append(number)
        await asyncio.sleep(0.001)
        inside.clear()


@case(busy=True)
async def a7_two_event_loops(h: Harness) -> None:
    """Two clients on event loops of two threads work side by side."""
    one, two = await h.make_remote_client(), await h.make_remote_client()
    inside: list[int] = []

    async def work(number: int) -> None:
        remote = (one, two)[number]
        for _ in range(5):
            await remote.call(lambda c: _hold(c, inside, number))

    await h.in_time(
        asyncio.gather(work(0), work(1)), "both had their turns", within=h.crowd_patience
    )
    await one.call(lambda c: c.storage.put("k", b"v"))
    record = await two.call(lambda c: c.storage.fetch("k"))
    assert record is not None
    assert record.value == b"v"
