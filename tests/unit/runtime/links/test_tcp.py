"""Links over real sockets: unknown peers, garbage, lost links, routes that are gone."""

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
import structlog

from runtime.asyncio_clock import AsyncioClock
from runtime.links import connection as link_connection
from runtime.links import port as quorum_port
from runtime.links import tcp as tcp_links
from runtime.links.frames import (
    Hello,
    LinkFrameReader,
    Note,
    framed,
    framed_hello,
    framed_note,
    header,
)
from runtime.links.interface import LinkEnd, Peer
from runtime.links.tcp import TcpLinks
from runtime.loop import fair_loop
from runtime.randomness import seeded
from tests.conformance.link_kits import Recorder
from tests.conformance.ports import free_port
from tests.unit.runtime.certificates import Authority
from tests.unit.runtime.http.http_kit import frozen
from tests.unit.runtime.links.tcp_kit import Node, Start, link, read_all, settle, tls_of

# -- strangers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50),
        b"\xff" * 64,
        bytes(64),
        framed(b"no magic here"),
        header(0, 0x01020304),
        framed(b"")[:8] + b"\x01\x02\x03\x04",
        framed_note(Note.OPEN),
        framed_note(Note.READY),
        framed_note(Note.HELLO, b"short"),
        framed_hello(Hello(bytes(8), bytes(8), bytes(64), b"node 7")) * 2,
    ],
    ids=[
        "http",
        "tls",
        "ones",
        "zeros",
        "no-magic",
        "bad-crc",
        "bad-header",
        "open",
        "ready",
        "short",
        "twice",
    ],
)
async def test_garbage_is_closed_and_counted_and_harms_nobody(start: Start, sent: bytes) -> None:
    one, two = start(1), start(2)
    await link(one, two)
    before = list(one.recorder.heard)
    reader, writer = await asyncio.open_connection("127.0.0.1", one.links.port)
    writer.write(sent)
    async with asyncio.timeout(1):
        await read_all(reader)
    writer.close()
    assert one.links.counters["links_rejected"] == 1
    assert one.recorder.heard == before
    assert two.links.send(1, b"still here")
    await settle(lambda: one.recorder.frames() == [b"still here"])


async def test_a_stranger_that_is_refused_is_told_why_and_not_whom_it_met(start: Start) -> None:
    one = start(1)
    one.recorder.refuse = "the cluster ids differ"
    reader, writer = await asyncio.open_connection("127.0.0.1", one.links.port)
    writer.write(framed_hello(Hello(b"x" * 8, bytes(8), bytes(64), b"node 2")))
    [answer] = LinkFrameReader().feed(await read_all(reader))
    writer.close()
    assert answer.endswith(b"the cluster ids differ")
    assert b"node 1" not in answer


@pytest.mark.slow
async def test_a_silent_stranger_is_closed_at_the_deadline(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_connection, "GREETING_DEADLINE_S", 0.05)
    one = start(1)
    reader, writer = await asyncio.open_connection("127.0.0.1", one.links.port)
    assert await read_all(reader) == b""
    writer.close()
    assert one.links.near_peers.inside == 0


async def test_silent_strangers_give_way_to_newcomers_and_a_peer_gets_in(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quorum_port, "QUORUM_STRANGERS", 5)
    one, two = start(1), start(2)
    await link(one, two)
    with ExitStack() as held:
        for _ in range(20):
            sock = socket.create_connection(("127.0.0.1", one.links.port))
            held.callback(sock.close)
        await settle(lambda: one.links.near_peers.ended == 15)
        assert one.links.near_peers.inside == 5
        assert one.links.send(2, b"the open link does not count")
        # The link breaks while the strangers stay: no dial waits for their deadlines.
        one.links._links[2].replace(LinkEnd.RESET)
        await settle(lambda: one.recorder.is_linked(2) and two.recorder.is_linked(1))
        assert one.links.near_peers.inside >= 3, "the strangers had left by themselves"
    await settle(lambda: one.links.near_peers.inside == 0)
    assert two.links.near_peers.inside == 0


async def test_only_a_judged_peer_goes_before_everybody_else(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    preferred: list[int] = []
    monkeypatch.setattr(fair_loop, "prefer", lambda sock: preferred.append(sock.fileno()))
    one = start(1)
    listening = list(preferred)
    one.recorder.refuse = "a stranger"
    reader, writer = await asyncio.open_connection("127.0.0.1", one.links.port)
    writer.write(framed_hello(Hello(b"x" * 8, bytes(8), bytes(64), b"node 2")))
    await read_all(reader)
    writer.close()
    assert preferred == listening, "a stranger's bytes went before the others'"
    one.recorder.refuse = None
    two = start(2)
    listening = list(preferred)
    await link(one, two)
    assert len(preferred) >= len(listening) + 2, "the link's bytes do, on both sides"


async def test_two_nodes_with_one_id_do_not_link(start: Start) -> None:
    one, twin = start(1), start(1)
    one.links.set_peers((Peer(2, "127.0.0.1", twin.links.port),))
    await settle(lambda: twin.links.counters["links_rejected"])
    assert one.recorder.heard == twin.recorder.heard == []


async def test_a_node_that_dials_itself_makes_no_link(start: Start) -> None:
    one = start(1)
    one.links.set_peers((Peer(2, "127.0.0.1", one.links.port),))
    with structlog.testing.capture_logs() as logs:
        await settle(lambda: [e for e in logs if e["event"] == "link_rejected"])
    assert logs[0]["reason"] == "we have dialled ourselves"
    assert not [entry for entry in one.recorder.heard if entry[0] == "up"]


# -- open links ----------------------------------------------------------------------------------


async def test_a_damaged_frame_ends_the_link_and_it_opens_again(start: Start) -> None:
    one, two = start(1), start(2)
    await link(one, two)
    connection = two.links._links[1]
    assert connection._transport is not None
    connection._transport.write(framed(b"damaged")[:-1] + b"!")
    await settle(lambda: ("down", 2, LinkEnd.REJECTED) in one.recorder.heard)
    await settle(lambda: one.recorder.is_linked(2) and two.recorder.is_linked(1))
    assert one.recorder.frames() == []
    assert ("down", 1, LinkEnd.RESET) in two.recorder.heard


async def test_a_peer_that_does_not_read_cannot_fill_our_memory(start: Start) -> None:
    one, two = start(1, send_queue_bytes_max=1_000_000), start(2)
    await link(one, two)
    transport = two.links._links[1]._transport
    assert transport is not None
    transport.pause_reading()
    frame = bytes(100_000)
    sent = 0
    while one.links.send(2, frame):
        sent += 1
    waiting = one.links._links[2]._transport
    assert waiting is not None
    assert 900_000 < waiting.get_write_buffer_size() < 1_000_100
    assert one.links.counters["frames_dropped"] == 1
    transport.resume_reading()
    await settle(lambda: len(two.recorder.frames()) == sent)
    assert one.links.send(2, frame)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_a_link_that_the_collector_leaves_alone_is_freed_at_its_end(
    start: Start, tmp_path: Path, tls: bool
) -> None:
    authority = Authority(tmp_path)
    one, two = (start(n, tls=tls_of(authority, n) if tls else None) for n in (1, 2))
    await link(one, two)
    with frozen() as transports:
        before = transports()
        one.links.stop()
        two.links.stop()
        await settle(lambda: transports() <= before - 2)


async def test_a_defect_of_the_handler_is_reported(start: Start) -> None:
    defects: list[BaseException] = []
    one, two = start(1, on_defect=defects.append), start(2)
    await link(one, two)

    def fail(node_id: int, frame: bytes) -> None:
        raise KeyError(frame)

    one.recorder.on_frame_do = fail
    two.links.send(1, b"x")
    await settle(lambda: defects)
    assert isinstance(defects[0], KeyError)


async def test_a_handler_may_stop_the_links_from_any_call(start: Start) -> None:
    one, two = start(1), start(2)
    await link(one, two)
    two.recorder.on_frame_do = lambda _node, _frame: two.links.stop()
    one.links.send(2, b"stop")
    one.links.send(2, b"not heard any more")
    await settle(lambda: not one.recorder.is_linked(2))
    assert two.recorder.frames() == [b"stop"]


async def test_a_restarted_peer_replaces_a_link_that_only_we_believe_in(start: Start) -> None:
    one, two = start(1), start(2)
    await link(one, two)
    # Node 1 vanishes without a word (a loss of power): node 2 sees nothing of it.
    for connection in list(one.links._connections):
        assert connection._transport is not None
        connection._transport.pause_reading()
    port = one.links.port
    one.links._quorum_port.close()
    again = start(1, port)
    again.links.set_peers((again.peer, two.peer))
    await settle(lambda: again.recorder.is_linked(2))
    assert [e for e in two.recorder.heard if e[0] != "frame"][-2:] == [
        ("down", 1, LinkEnd.RESET),
        ("up", 1),
    ]


@pytest.mark.parametrize(("losing", "believing"), [(1, 2), (2, 1)])
async def test_a_link_that_ended_on_one_side_only_is_replaced(
    start: Start, losing: int, believing: int
) -> None:
    loser, believer = start(losing), start(believing)
    await link(loser, believer)
    connection = loser.links._links[believing]
    assert connection._transport is not None
    # The other side never hears of it: a firewall that forgot the connection.
    connection._transport.abort = lambda: None
    connection.replace(LinkEnd.RESET)
    await settle(lambda: loser.recorder.is_linked(believing))
    await settle(lambda: believer.links.counters["links_opened"] == 2)
    assert believer.recorder.heard[-2:] == [("down", losing, LinkEnd.RESET), ("up", losing)]
    cast("Any", connection._transport)._force_close(None)


async def test_when_a_link_is_up_no_dial_is_left_over(start: Start) -> None:
    one, two = start(1), start(2)
    await link(one, two)
    assert not one.links._targets[2].is_busy()
    assert not two.links._targets[1].is_busy()


# -- peers that are not there --------------------------------------------------------------------


async def test_nobody_listening_is_refused_and_tried_again(start: Start) -> None:
    one = start(1)
    one.links.set_peers((Peer(2, "127.0.0.1", free_port()),))
    await settle(lambda: one.recorder.heard.count(("down", 2, LinkEnd.REFUSED)) >= 3)


async def test_a_route_that_swallows_everything_is_unreachable(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp_links, "DIAL_S", 0.1)
    one = start(1)
    with ExitStack() as held:
        # A full backlog drops further dials without an answer.
        full = held.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):
            sock = held.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())
        one.links.set_peers((Peer(2, "127.0.0.1", full.getsockname()[1]),))
        await settle(lambda: one.recorder.heard)
    assert one.recorder.heard[0] == ("down", 2, LinkEnd.UNREACHABLE)


@pytest.mark.parametrize("name", ["no-such-host.invalid", "two..example.org", "x" * 64])
async def test_a_name_without_an_address_is_unreachable(start: Start, name: str) -> None:
    one = start(1)
    one.links.set_peers((Peer(2, name, 1),))
    await settle(lambda: one.recorder.heard)
    assert one.recorder.heard[0] == ("down", 2, LinkEnd.UNREACHABLE)


async def test_a_peer_that_accepts_and_says_nothing_is_unreachable(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_connection, "GREETING_DEADLINE_S", 0.05)
    one = start(1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        one.links.set_peers((Peer(2, "127.0.0.1", silent.getsockname()[1]),))
        await settle(lambda: one.recorder.heard)
    assert one.recorder.heard[0] == ("down", 2, LinkEnd.UNREACHABLE)


async def test_a_port_in_use_is_said_clearly(start: Start) -> None:
    one = start(1)
    with pytest.raises(OSError, match=rf"port {one.links.port} on 127\.0\.0\.1 is in use by"):
        Node(2, one.links.port)


async def test_an_address_of_another_machine_is_said_clearly() -> None:
    links = TcpLinks(
        1, "192.0.2.1", 0, clock=AsyncioClock(), random=seeded(1), log=structlog.get_logger()
    )
    with pytest.raises(OSError, match=r"192\.0\.2\.1 is not an address of this machine"):
        links.start(Recorder(1))
