"""Measures what the machine can do at best now: fdatasync, a TCP echo, an idle loop's timer.

Rule: a floor is measured in the same folder and in the same minute as its figure. The two ends of
the echo are two processes, as in a cluster.
"""

import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.instruments.figures import Floor

SMALL, LARGE = 150, 16 * 1024
_SYNC_S = 0.3
_ECHO_S = 0.2
_TICK_S = 0.01


class Floors(NamedTuple):
    """Medians, in milliseconds unless said otherwise."""

    sync_small_ms: float
    sync_large_ms: float
    echo_ms: float
    """There and back, 100 bytes."""
    echo_64_per_s: float
    """Round trips a second over 64 connections."""

    @property
    def syncs(self) -> Floor:
        """As a rate."""
        return Floor("fdatasync 150 B", 1000 / self.sync_small_ms)

    @property
    def large_syncs(self) -> Floor:
        """As a rate."""
        return Floor("fdatasync 16 KiB", 1000 / self.sync_large_ms)

    @property
    def commit(self) -> Floor:
        """The least that a commit on a majority takes: there, sync, and back."""
        return Floor("echo + fdatasync", self.echo_ms + self.sync_small_ms)

    @property
    def echoes(self) -> Floor:
        """As a rate over 64 connections."""
        return Floor("TCP echo, 64 conn.", self.echo_64_per_s)

    @property
    def echo(self) -> Floor:
        """One round trip."""
        return Floor("TCP echo", self.echo_ms)


def sync_ms(folder: Path, size: int) -> float:
    """Median of fdatasync after an append of `size` bytes."""
    path = folder / "floor"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o600)
    data, times = os.urandom(size), []
    until = time.perf_counter() + _SYNC_S
    try:
        while (started := time.perf_counter()) < until:
            os.write(fd, data)
            os.fdatasync(fd)
            times.append(time.perf_counter() - started)
    finally:
        os.close(fd)
        path.unlink()
    return statistics.median(times) * 1000


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class _Pinger(asyncio.Protocol):
    def __init__(self, until: float) -> None:
        self.until = until
        self.times: list[float] = []
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.sent = time.perf_counter()
        self.transport.write(bytes(100))

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self.times.append(now - self.sent)
        if now < self.until:
            self.send()
        elif not self.done.done():
            self.done.set_result(None)
            self.transport.close()


async def _ping(port: int, connections: int) -> tuple[float, float]:
    """Return the median round trip in ms, and round trips a second."""
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    pingers = []
    for _ in range(connections):
        _, pinger = await loop.create_connection(
            lambda: _Pinger(started + _ECHO_S), "127.0.0.1", port
        )
        pingers.append(pinger)
    await asyncio.gather(*(pinger.done for pinger in pingers))
    took = time.perf_counter() - started
    times = [one for pinger in pingers for one in pinger.times]
    return statistics.median(times) * 1000, len(times) / took


def echo() -> tuple[float, float]:
    """Median of one round trip in ms; round trips a second over 64 connections."""
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.instruments.floors"], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        alone, _ = asyncio.run(_ping(port, 1))
        _, rate = asyncio.run(_ping(port, 64))
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()
    return alone, rate


def reset_ms() -> float:
    """From SIGKILL of a process to the end of a connection with it."""
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.instruments.floors"], stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    with (
        server.stdout,
        socket.create_connection(("127.0.0.1", int(server.stdout.readline()))) as end,
    ):
        end.sendall(b"?")
        end.recv(1)
        started = time.perf_counter()
        server.kill()
        with contextlib.suppress(ConnectionError):
            end.recv(1)
        took = time.perf_counter() - started
    server.wait()
    return took * 1000


def measure(folder: Path) -> Floors:
    """Measure all, in under two seconds."""
    alone, rate = echo()
    return Floors(sync_ms(folder, SMALL), sync_ms(folder, LARGE), alone, rate)


def middle(measured: Sequence[Floors]) -> Floors:
    """The median of floors that were measured between the rounds."""
    return Floors(*(statistics.median(values) for values in zip(*measured, strict=True)))


class IdleProcess:
    """A process that does nothing but wait for a timer every 10 ms: what the machine itself stalls.

    `with IdleProcess() as idle: …` and then `idle.late_ms`, as long as the block.
    """

    def __enter__(self) -> "IdleProcess":
        self.late_ms: list[float] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.instruments.floors", "idle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        return self

    def __exit__(self, *_: object) -> None:
        out = self._process.communicate()[0]
        self.late_ms = [float(line) for line in out.split()]


async def _idle() -> None:
    loop, late = asyncio.get_running_loop(), []
    ended = loop.run_in_executor(None, sys.stdin.read)
    print("ready", flush=True)
    while not ended.done():
        due = loop.time() + _TICK_S
        await asyncio.sleep(_TICK_S)
        late.append(max(0.0, loop.time() - due) * 1000)
    print("\n".join(map(str, late)))


if __name__ == "__main__":
    asyncio.run(_idle() if sys.argv[1:] == ["idle"] else _serve())
