"""An event loop on which many callbacks wait for their turn."""

import asyncio
import select
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NoReturn

import pytest

from runtime.loop.fair_loop import OTHERS_MIN, READY_MAX, FewAtATime, prefer, run

CROWD = 6 * READY_MAX


@pytest.fixture
def crowd() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    pairs = [socket.socketpair() for _ in range(CROWD)]
    for ours, theirs in pairs:
        ours.setblocking(False)
        theirs.setblocking(False)
    yield pairs
    for ours, theirs in pairs:
        ours.close()
        theirs.close()


def test_a_timer_comes_between_the_requests_of_a_crowd(
    crowd: list[tuple[socket.socket, socket.socket]],
) -> None:
    order: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def take(ours: socket.socket) -> None:
            ours.recv(10)
            order.append("request")
            if order.count("request") == 1:
                loop.call_later(0, order.append, "timer")
            if order.count("request") == CROWD:
                done.set_result(None)

        for ours, theirs in crowd:
            loop.add_reader(ours, take, ours)
            theirs.send(b"?")
        await done
        for ours, _ in crowd:
            loop.remove_reader(ours)

    run(main())
    assert order.count("request") == CROWD
    assert order.index("timer") <= 2 * READY_MAX


def test_who_asks_again_and_again_does_not_starve_the_others(
    crowd: list[tuple[socket.socket, socket.socket]],
) -> None:
    """Sockets that are never read stay ready for ever; each must get its turn all the same."""
    selector = FewAtATime()
    for ours, theirs in crowd:
        selector.register(ours.fileno(), 1, None)
        theirs.send(b"?")
    seen: set[int] = set()
    for _ in range(2 * CROWD // READY_MAX):
        ready = selector.select(0)
        assert len(ready) <= READY_MAX
        seen |= {key.fd for key, _ in ready}
    assert len(seen) == CROWD
    selector.close()


def test_what_is_preferred_comes_first_however_large_the_crowd(
    crowd: list[tuple[socket.socket, socket.socket]],
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, FewAtATime() as selector:
        for one, other in crowd:
            selector.register(one, selectors.EVENT_READ)
            other.send(b"?")
        selector.register(ours, selectors.EVENT_READ, "preferred")
        selector.prefer(ours.fileno())
        assert "preferred" not in {key.data for key, _ in selector.select(0)}
        theirs.send(b"!")
        for _ in range(3):
            ready = selector.select(0)
            assert ready[0][0].data == "preferred"
            assert len(ready) > READY_MAX // 2, "and the others go on"


def test_who_is_hastened_comes_before_the_crowd_and_leaves_it_a_little(
    crowd: list[tuple[socket.socket, socket.socket]],
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, FewAtATime() as selector:
        for place, (one, other) in enumerate(crowd):
            kind = "hastened" if place < CROWD // 2 else "other"
            selector.register(one, selectors.EVENT_READ, kind)
            if kind == "hastened":
                selector.hasten(one.fileno())
            other.send(b"?")
        selector.register(ours, selectors.EVENT_READ, "preferred")
        selector.prefer(ours.fileno())
        theirs.send(b"!")
        for _ in range(5):
            found = [key.data for key, _ in selector.select(0)]
            assert found[0] == "preferred"
            assert found.count("hastened") == READY_MAX
            assert found[-1] == "other"
            assert OTHERS_MIN <= found.count("other") <= OTHERS_MIN + 2


def test_who_is_hastened_does_not_wait_for_the_crowd_to_have_its_turn(
    crowd: list[tuple[socket.socket, socket.socket]],
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, FewAtATime() as selector:
        for one, other in crowd:
            selector.register(one, selectors.EVENT_READ, "other")
            other.send(b"?")
        selector.register(ours, selectors.EVENT_READ, "broker")
        selector.hasten(ours.fileno())
        selector.select(0)
        theirs.send(b"!")
        assert selector.select(0)[0][0].data == "broker"


class Polled:
    """An epoll set that counts its polls."""

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self.polls = 0

    def poll(self, timeout: float, most: int = -1) -> list[tuple[int, int]]:
        self.polls += 1
        return self._epoll.poll(timeout, most)

    def __getattr__(self, name: str) -> object:
        return getattr(self._epoll, name)


@pytest.mark.parametrize("kind", ["preferred", "hastened", "other", "nobody"])
def test_a_pass_polls_only_the_sets_that_have_ready_sockets(kind: str) -> None:
    with ExitStack() as stack:
        pairs = {name: socket.socketpair() for name in ("preferred", "hastened", "other")}
        for pair in pairs.values():
            stack.enter_context(pair[0])
            stack.enter_context(pair[1])
        selector = stack.enter_context(FewAtATime())
        for name, (ours, _) in pairs.items():
            selector.register(ours, selectors.EVENT_READ, name)
        selector.prefer(pairs["preferred"][0].fileno())
        selector.hasten(pairs["hastened"][0].fileno())
        sets = {
            "all": Polled(selector._all),
            "preferred": Polled(selector._first),
            "hastened": Polled(selector._soon),
            "other": Polled(selector._epoll),
        }
        selector._all, selector._first = sets["all"], sets["preferred"]
        selector._soon, selector._epoll = sets["hastened"], sets["other"]
        if kind != "nobody":
            pairs[kind][1].send(b"!")
        expected = [] if kind == "nobody" else [kind]
        assert [key.data for key, _ in selector.select(0)] == expected
        assert [name for name, each in sets.items() if each.polls] == ["all", *expected]
        assert max(each.polls for each in sets.values()) == 1


def test_a_number_that_is_not_registered_is_not_hastened_for_its_next_owner() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, FewAtATime() as selector:
        selector.hasten(ours.fileno())
        selector.register(ours, selectors.EVENT_READ, "a stranger")
        assert ours.fileno() not in selector._sets


@pytest.mark.parametrize("before", [True, False])
def test_what_is_preferred_wakes_a_loop_that_waits(before: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, FewAtATime() as selector:
        if before:
            selector.prefer(ours.fileno())
        selector.register(ours, selectors.EVENT_READ, "it")
        selector.prefer(ours.fileno())
        threading.Timer(0.05, theirs.send, (b"!",)).start()
        ready = selector.select(20)
        assert [(key.data, events) for key, events in ready] == [("it", selectors.EVENT_READ)]
        selector.modify(ours, selectors.EVENT_READ | selectors.EVENT_WRITE, "both")
        assert selector.select(0)[0] == (selector.get_key(ours), 3)
        selector.unregister(ours)
        assert selector.select(0) == []
        selector.register(ours, selectors.EVENT_READ, "again, as any other")
        assert len(selector.select(0)) == 1


def test_a_connection_of_this_loop_can_be_preferred() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)

    async def main() -> bytes:
        prefer(ours)
        asyncio.get_running_loop().call_later(0.01, theirs.send, b"!")
        return await asyncio.get_running_loop().sock_recv(ours, 1)

    with ours, theirs:
        assert run(main()) == b"!"
        assert asyncio.run(main()) == b"!"


def test_readers_and_writers_come_and_go() -> None:
    async def main() -> list[bytes]:
        ended: asyncio.Queue[None] = asyncio.Queue()

        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.close()
            await writer.wait_closed()
            ended.put_nowait(None)

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def client(number: int) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(bytes([number]) * 500_000)
            answer = await reader.readexactly(500_000)
            writer.close()
            await writer.wait_closed()
            return answer[:1] + answer[-1:]

        found = await asyncio.gather(*(client(number) for number in range(8)))
        for _ in found:
            await ended.get()
        server.close()
        await server.wait_closed()
        return list(found)

    assert run(main()) == [bytes([number]) * 2 for number in range(8)]


def test_it_waits_for_a_timer_and_does_not_spin() -> None:
    async def main() -> float:
        used = time.process_time()
        await asyncio.sleep(0.2)
        return time.process_time() - used

    assert run(main()) < 0.1


def test_a_descriptor_is_registered_once() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, FewAtATime() as selector:
        selector.register(ours.fileno(), 1)
        with pytest.raises(KeyError):
            selector.register(ours, 1)
        selector.unregister(ours)
        with pytest.raises(KeyError):
            selector.unregister(ours.fileno())


def test_a_file_that_was_closed_can_still_be_unregistered() -> None:
    ours, theirs = socket.socketpair()
    with theirs, FewAtATime() as selector:
        selector.register(ours, 1, "it")
        ours.close()
        assert selector.unregister(ours).data == "it"
        assert not selector.get_map()


def test_a_new_connection_is_not_searched_for_among_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Unsearchable(dict[int, selectors.SelectorKey]):
        def values(self) -> NoReturn:
            raise AssertionError("it looked at every connection")

    ours, theirs = socket.socketpair()
    with ours, theirs, FewAtATime() as selector:
        monkeypatch.setattr(selector, "_keys", Unsearchable())
        with pytest.raises(KeyError):
            selector.get_key(ours.fileno())  # asyncio asks this before it registers a connection.
        selector.register(ours.fileno(), selectors.EVENT_READ)
        assert selector.get_key(ours.fileno()).fd == ours.fileno()


def test_sockets_are_not_polled_again_at_once_while_callbacks_wait() -> None:
    now = [100.0]
    selector = FewAtATime(0.5, lambda: now[0])
    near, far = socket.socketpair()
    try:
        selector.register(near, selectors.EVENT_READ)
        assert selector.select(0) == []
        far.send(b"x")
        measured = sum(selector.meter.counts)
        assert selector.select(0) == []
        assert sum(selector.meter.counts) == measured
        # A loop without ready callbacks polls in any case.
        assert len(selector.select(1.0)) == 1
        assert selector.select(0) == []
        now[0] += 0.6
        assert len(selector.select(0)) == 1
    finally:
        selector.close()
        near.close()
        far.close()
