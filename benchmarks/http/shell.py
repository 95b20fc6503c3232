"""`python -m benchmarks.http.shell` measures the HTTP server alone: processor time a request.

It serves one handler that replies at once, and compares in turns: our server, the same on other
event loops, and as floors a bare Protocol over httptools and aiohttp's low-level server. The load
comes from another process over 64 kept-alive connections, so only the server's own time counts.
Each figure is the median of its rounds; quote the ratios, not the numbers. uvloop is measured if it
is installed.
"""

import argparse
import asyncio
import importlib.util
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httptools
import structlog
from aiohttp import web

from benchmarks.instruments.http_pipe import encoded, load
from runtime.http.content_digest import content_digest
from runtime.http.requests import MSGPACK, Caller, Reply, Request
from runtime.http.server import HttpServer
from runtime.loop import fair_loop

CONNECTIONS = 64
BODY = bytes(200)
BARE = "bare Protocol over httptools"
_ANSWER = Reply(200, BODY, {"content-type": MSGPACK})


class _Bare(asyncio.Protocol):
    """Parses and answers; no limits, no deadlines, no headers."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n" + BODY)


async def _bare() -> int:
    server = await asyncio.get_running_loop().create_server(_Bare, "127.0.0.1", 0)
    return int(server.sockets[0].getsockname()[1])


async def _aiohttp() -> int:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=BODY, content_type=MSGPACK)

    server = web.Server(answer, access_log=None)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    return int(listening.sockets[0].getsockname()[1])


async def _ours() -> int:
    def handle(_: Request, reply: Callable[[Reply], None]) -> None:
        reply(_ANSWER)

    server = HttpServer(
        handle,
        "127.0.0.1",
        0,
        authenticate=lambda *_: Caller("User:load", "token", "127.0.0.1"),
        on_error=lambda status, _code, message: Reply(status, message.encode()),
        log=structlog.get_logger(),
        hastened=("/v1/metadata/fetch",),
    )
    server.start()
    return server.port


def _asyncio_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop()


def _uvloop() -> asyncio.AbstractEventLoop:
    return importlib.import_module("uvloop").new_event_loop()  # type: ignore[no-any-return]


KINDS: dict[str, tuple[Callable[[], Awaitable[int]], Callable[[], asyncio.AbstractEventLoop]]] = {
    BARE: (_bare, _asyncio_loop),
    "bare aiohttp": (_aiohttp, _asyncio_loop),
    "ours": (_ours, fair_loop.new_loop),
    "ours, asyncio's own loop": (_ours, _asyncio_loop),
    "ours, uvloop": (_ours, _uvloop),
    "bare, uvloop": (_bare, _uvloop),
}
REQUESTS = {
    "POST": encoded(
        "POST",
        "/v1/metadata/fetch",
        BODY,
        MSGPACK,
        f"content-digest: {content_digest(BODY)}\r\nauthorization: Bearer load\r\n",
    ),
    "GET": encoded("GET", "/v1/brokers/1?consistency=stale"),
}


async def _serve(kind: str) -> None:
    print(await KINDS[kind][0](), flush=True)
    await asyncio.sleep(3600)


def _used_s(pid: int) -> float:
    """Processor time of a process's first thread, in seconds, to the microsecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _round(kind: str, request: bytes, seconds: float) -> float:
    """Return the microseconds of processor time for one request."""
    arguments = [sys.executable, "-m", "benchmarks.http.shell", "--serve", kind]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            asyncio.run(load(port, CONNECTIONS, seconds / 4, lambda _: request))
            before = _used_s(server.pid)
            one = asyncio.run(load(port, CONNECTIONS, seconds, lambda _: request))
            return (_used_s(server.pid) - before) / len(one.times) * 1e6
        finally:
            server.kill()


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http.shell")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of load in each round")
    parser.add_argument("--serve", choices=list(KINDS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        with asyncio.Runner(loop_factory=KINDS[arguments.serve][1]) as runner:
            runner.run(_serve(arguments.serve))
        return 0
    kinds = [k for k in KINDS if "uvloop" not in k or importlib.util.find_spec("uvloop")]
    for method, request in REQUESTS.items():
        rounds: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(arguments.rounds):
            for kind in kinds:
                rounds[kind].append(_round(kind, request, arguments.seconds))
        floor = statistics.median(rounds[BARE])
        print(f"{method}, processor time a request")
        for kind in kinds:
            middle = statistics.median(rounds[kind])
            spread = f"{min(rounds[kind]):.1f} to {max(rounds[kind]):.1f}"
            print(f"  {kind:32} {middle:6.1f} µs ({spread}), {middle / floor:4.1f} x the floor")
    return 0


if __name__ == "__main__":
    sys.exit(main())
