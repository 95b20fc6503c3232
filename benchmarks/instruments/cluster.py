"""Runs three controllers as real processes: `logberg controller --config`, as in production.

Rule: they use plain HTTP on loopback without authentication, so that figures show our code and not
the TLS library. Every other setting is the default. The time of a start counts from exec.
"""

import asyncio
import math
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from benchmarks.instruments.bench import free_ports
from benchmarks.instruments.http_pipe import NoAnswerError, Pipe
from logberg.local.child import Child, stop_all
from logberg.local.toml_text import to_toml

CLUSTER_ID = "benchmark"
READY_S = 30.0


class Controllers:
    """`async with Controllers(folder) as controllers:` started, one of them active."""

    first = 1
    """The first node's number, if none listens for Kafka's protocol."""

    def __init__(
        self, folder: Path, count: int = 3, *, kafka: bool | int = False, **settings: Any
    ) -> None:
        """`settings` go into every configuration file as they are. `kafka`: listen for it."""
        self.folder = folder
        self._kafka = bool(kafka)
        # Simulated brokers have the numbers from 1 on, and Kafka knows one space of numbers.
        first = 9_001 if kafka else self.first
        numbers = range(first, first + count)
        ports = free_ports(5 * count)
        self._agent_ports = dict(zip(numbers, ports[2 * count : 3 * count], strict=True))
        self.kafka_ports = dict(zip(numbers, ports[3 * count : 4 * count], strict=True))
        """Of the controllers' listeners for Kafka's protocol."""
        self.agent_kafka_ports = dict(zip(numbers, ports[4 * count :], strict=True))
        """Of the agents' listeners for Kafka's protocol, in combined mode."""
        self.ports = dict(zip(numbers, ports[count : 2 * count], strict=True))
        self._peers = [
            {
                "node_id": n,
                "quorum": f"127.0.0.1:{ports[n - first]}",
                "http": f"http://127.0.0.1:{self.ports[n]}",
            }
            for n in numbers
        ]
        self.children = {
            n: Child(
                f"controller-{n}",
                ["controller", "--config", str(folder / f"controller-{n}.toml")],
                folder / f"controller-{n}.log",
            )
            for n in numbers
        }
        self.configure(**settings)

    def configure(self, **settings: Any) -> None:
        """Write the configuration files; they are read at the next start."""
        for n in self.children:
            config = {
                "cluster_id": CLUSTER_ID,
                "node_id": n,
                "data": str(self.folder / f"controller-{n}"),
                "authorization": "off",
                **self.roles(n),
                **settings,
                "controllers": self._peers,
            }
            (self.folder / f"controller-{n}.toml").write_text(to_toml(config))

    def roles(self, number: int) -> dict[str, Any]:
        """Settings of a node's role and of its listener for Kafka's protocol."""
        return {"kafka": _listener(self.kafka_ports[number])} if self._kafka else {}

    @property
    def urls(self) -> tuple[str, ...]:
        """Of all."""
        return tuple(f"http://127.0.0.1:{port}" for port in self.ports.values())

    async def __aenter__(self) -> Self:
        for child in self.children.values():
            child.start()
        try:
            await self.active()
        except BaseException:
            self.kill()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.stop)

    def stop(self) -> None:
        """End all in order."""
        stop_all(list(self.children.values()), 20)

    def stop_one(self, n: int) -> None:
        """End one in order."""
        stop_all([self.children[n]], 20)

    def kill(self, *numbers: int) -> None:
        """End some, or all, at once."""
        for n in numbers or self.children:
            self.children[n].signal(signal.SIGKILL)
            self.children[n].wait(5)

    async def status(self, n: int, deadline_s: float = 1.0) -> Mapping[str, Any]:
        """`GET /v1/status` of one. Raises NoAnswerError."""
        return await ask(self.ports[n], "GET", "/v1/status", deadline_s=deadline_s)

    async def active(self, deadline_s: float = READY_S) -> int:
        """Wait until one is active, and return its number."""
        until = time.monotonic() + deadline_s
        while time.monotonic() < until:
            for n in self.ports:
                try:
                    if (await self.status(n))["active"]:
                        return n
                except NoAnswerError:
                    pass
            await asyncio.sleep(0.02)
        words = {child.name: child.last_words() for child in self.children.values()}
        raise RuntimeError(f"no controller became active within {deadline_s:.0f} s: {words}")

    async def caught_up(self, n: int, deadline_s: float = READY_S) -> None:
        """Wait until a controller is ready and has what the active one has."""
        until = time.monotonic() + deadline_s
        offset = (await self.status(await self.active()))["offset"]
        while time.monotonic() < until:
            try:
                health = await ask(self.ports[n], "GET", "/health/ready")
                if (await self.status(n))["offset"] >= offset and health["healthy"]:
                    return
            except NoAnswerError:
                pass
            await asyncio.sleep(0.02)
        raise RuntimeError(f"controller {n} did not catch up: {self.children[n].last_words()}")

    def log_events(self, event: str) -> list[dict[str, Any]]:
        """What the processes logged under a name."""
        wanted = f'"event": "{event}"'.encode()
        return [
            msgspec.json.decode(line)
            for child in self.children.values()
            for line in child.output.read_bytes().splitlines()
            if wanted in line
        ]

    def cpu_s(self) -> float:
        """Processor time that all have used, in seconds."""
        return sum(cpu_s(child.pid) for child in self.children.values() if child.running)

    async def stalls(self) -> "list[LateTicks]":
        """How late the loops of all have been so far. Raises NoAnswerError."""
        return [LateTicks.read(await text(port, "/metrics")) for port in self.ports.values()]


class CombinedNodes(Controllers):
    """Each process is a controller and a broker's agent (combined mode)."""

    first = 9_001

    def roles(self, number: int) -> dict[str, Any]:
        """The broker's role. It holds no data, so that it also asks for ISRs.

        Only its agent listens for Kafka's protocol: a controller that does has no agent.
        """
        kafka = {"kafka": _listener(self.agent_kafka_ports[number])} if self._kafka else {}
        agent = f"127.0.0.1:{self._agent_ports[number]}"
        return {"broker": {"http": agent, "holds_no_data": True, **kafka}}


def _listener(port: int) -> dict[str, Any]:
    return {"listen": f"127.0.0.1:{port}"}


def cpu_s(pid: int) -> float:
    """Processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class LateTicks(NamedTuple):
    """A process's histogram of how late its loop called a timer that is due every 10 ms."""

    buckets: tuple[tuple[float, int], ...]
    """Upper bound in ms, and how many ticks were no later (cumulative)."""
    worst_ms: float
    """Since the start of the process."""

    @classmethod
    def read(cls, metrics: str) -> "LateTicks":
        """Find it among a process's metrics."""
        name = "logberg_loop_late_seconds_bucket"
        found = re.findall(rf'^{name}{{le="([^"]+)"}} (\d+)$', metrics, re.MULTILINE)
        worst = re.search(r"^logberg_loop_late_worst_seconds (\S+)$", metrics, re.MULTILINE)
        assert worst is not None, "this controller does not show its stalls"
        return cls(
            tuple((float(bound) * 1000, int(count)) for bound, count in found),
            float(worst[1]) * 1000,
        )

    def since(self, before: "LateTicks") -> "LateTicks":
        """What came after an earlier reading; the worst is exact only if it is the newer one's."""
        pairs = zip(self.buckets, before.buckets, strict=True)
        buckets = tuple((bound, now - then) for (bound, now), (_, then) in pairs)
        worst_ms = self.worst_ms
        if worst_ms == before.worst_ms:
            worst_ms = min(worst_ms, _bound(buckets, buckets[-1][1]))
        return LateTicks(buckets, worst_ms)

    def ms(self, share: float) -> float:
        """The bound that `share` of the ticks were within."""
        return min(self.worst_ms, _bound(self.buckets, math.ceil(share * self.buckets[-1][1])))


def _bound(buckets: tuple[tuple[float, int], ...], wanted: int) -> float:
    return next((bound for bound, count in buckets if count >= wanted), math.inf)


async def text(port: int, path: str, deadline_s: float = 2.0) -> str:
    """`GET` of what isn't JSON. Raises NoAnswerError."""
    return (await _call(port, "GET", path, b"", deadline_s)).decode()


async def ask(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    *,
    deadline_s: float = 1.0,
) -> dict[str, Any]:
    """One request in JSON on a connection of its own; errors come back as their bodies.

    Raises NoAnswerError.
    """
    data = b"" if body is None else msgspec.json.encode(body)
    return msgspec.json.decode(await _call(port, method, path, data, deadline_s))  # type: ignore[no-any-return]


async def _call(port: int, method: str, path: str, data: bytes, deadline_s: float) -> bytes:
    try:
        async with asyncio.timeout(deadline_s):
            pipe = await Pipe.open(port)
            try:
                _, answer = await pipe.call(method, path, data)
            finally:
                pipe.close()
    except (OSError, TimeoutError) as error:
        raise NoAnswerError(str(error)) from None
    return answer
