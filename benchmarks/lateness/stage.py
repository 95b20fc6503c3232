"""The cluster that `make lateness` measures: three real controllers, many partitions, brokers.

Rule: requests create the whole state, as users would; nothing is written into the folders. During
all loads each broker sends a heartbeat once a second.
"""

import asyncio
import contextlib
import datetime as dt
import json
import time
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from benchmarks.http.topics import create
from benchmarks.instruments.cluster import Controllers
from benchmarks.instruments.http_pipe import NoAnswerError, request_id
from benchmarks.instruments.simulated_brokers import SimulatedBrokers
from logberg.local.local_ca import LocalCertificateAuthority
from metadata.sealing import KEY_BYTES
from runtime.disk.secret_file import write_new_secret
from runtime.http.requests import JSON

BROKERS = 100
BIGGEST = "biggest"
_BIGGEST_SHARE = 10
"""One topic has a tenth of all partitions."""
_MANY = 10
"""Partitions of each small topic; together they are a fifth of all."""
TOKEN = "qk_of-a-user-who-measures"
_SETTINGS: dict[str, Any] = {
    # While topics are created, brokers that are not heard shall not be fenced.
    "session_ms": 60_000,
    # The quota is judged by its own load; the state is made as fast as can be.
    "partition_mutations_per_s": 0,
    "tokens": [{"principal": "User:bench", "sha256": sha256(TOKEN.encode()).hexdigest()}],
}


class Stage:
    """What loads are run on."""

    def __init__(self, controllers: Controllers, brokers: SimulatedBrokers) -> None:
        self.controllers = controllers
        self.brokers = brokers
        self.session = aiohttp.ClientSession(auto_decompress=False)
        self.leader = 0
        self.answers: dict[str, int] = {}
        """How many answers there were, by `METHOD path status`."""
        self.beaten: set[int] = set()
        """Places in `brokers` of those whose heartbeats a load sends itself."""
        self.largest = 0
        """Partitions of the biggest topic."""
        self._last_id = BROKERS + 5_000
        self.notes: list[str] = []
        """What the load under way has to say."""
        self.seconds = 3.0
        """How long a load lasts."""

    def fresh_id(self) -> int:
        """A broker id that was never used."""
        self._last_id += 1
        return self._last_id

    def note(self, text: str) -> None:
        """Show this beside the row of the load under way."""
        self.notes.append(text)

    async def find_leader(self) -> int:
        """Ask who leads, and return its epoch."""
        self.leader = await self.controllers.active()
        epoch: int = (await self.controllers.status(self.leader, 30.0))["leaderEpoch"]
        return epoch

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        accept: str = JSON,
        sent: str = JSON,
        headers: dict[str, str] | None = None,
        node: int | None = None,
        keep: bool = False,
    ) -> tuple[int, bytes]:
        """One request to the leader; the answer is read and, unless `keep`, dropped."""
        port = self.controllers.ports[self.leader if node is None else node]
        url = f"http://127.0.0.1:{port}{path}"
        everything = {"accept": accept, "content-type": sent, **(headers or {})}
        kept: list[bytes] = []
        async with self.session.request(
            method, url, data=body or None, headers=everything
        ) as response:
            if keep:
                kept = [data async for data in response.content.iter_any()]
            else:
                async for _ in response.content.iter_any():
                    pass
            key = f"{method} {path.partition('?')[0]} {response.status}"
            self.answers[key] = self.answers.get(key, 0) + 1
            return response.status, b"".join(kept)

    async def json(self, path: str) -> dict[str, Any]:
        """`GET` of something in JSON."""
        answer: dict[str, Any] = json.loads((await self.ask("GET", path, keep=True))[1])
        return answer

    async def change(
        self, method: str, path: str, message: object | None = None, bearer: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """A change with a request id of its own; status and answer.

        A large change takes longer than a controller waits: then the request is sent again.
        """
        name, _, value = request_id().strip().partition(": ")
        headers = {name: value} | ({"authorization": f"Bearer {bearer}"} if bearer else {})
        body = b"" if message is None else msgspec.json.encode(message)
        while True:
            status, text = await self.ask(method, path, body, headers=headers, keep=True)
            answer = json.loads(text)
            if status != 503 or answer["code"] != "REQUEST_TIMED_OUT":
                return status, answer

    def going_on(self) -> Iterator[int]:
        """Count turns until the load's time is over; two turns at least."""
        until = time.monotonic() + self.seconds
        turn = 0
        while turn < 2 or time.monotonic() < until:
            yield turn
            turn += 1


@contextlib.asynccontextmanager
async def stage(
    folder: Path, partitions: int, nodes: type[Controllers] = Controllers, **settings: Any
) -> AsyncIterator[Stage]:
    """A cluster with so many partitions, its brokers online and heartbeating."""
    # A checkpoint for some 100,000 partitions that are made: the folders hold a few.
    # Levels that can rise and fall: no record or field came with 29.
    wanted = {
        "checkpoint_bytes": max(1 << 20, 20 * partitions),
        "initial_features": {"metadata.version": 28},
        # Nothing ever moves there.
        "archive": {"to": str(folder / "archive"), "keep_bytes": 1 << 50},
        "join": _authority(folder / "certs"),
        **_SETTINGS,
        **settings,
    }
    key = folder / "cluster.key"
    write_new_secret(key, KEY_BYTES)
    async with nodes(folder, kafka=True, cluster_key=str(key), **wanted) as controllers:
        port = controllers.ports[await controllers.active()]
        async with SimulatedBrokers(port, BROKERS) as brokers:
            made = Stage(controllers, brokers)
            beating = asyncio.create_task(_beat(brokers, made.beaten))
            try:
                await create(controllers, _bodies(partitions))
                made.largest = max(1, partitions // _BIGGEST_SHARE)
                await made.find_leader()
                yield made
            finally:
                beating.cancel()
                await made.session.close()


def _authority(folder: Path) -> dict[str, str]:
    """Make an authority that signs certificates of nodes."""
    made = LocalCertificateAuthority(folder, "lateness", dt.datetime.now(dt.UTC))
    return {"ca_cert": str(made.ca_path), "ca_key": str(folder / "ca.key")}


def _bodies(partitions: int) -> Iterator[bytes]:
    """The requests that make the state, largest topic first."""
    biggest = max(1, partitions // _BIGGEST_SHARE)
    small = max(1, partitions // 5 // _MANY)
    rest = partitions - biggest - small * _MANY
    size = max(1, min(1_000, rest))
    yield _body((BIGGEST, biggest))
    for start in range(0, small, 100):
        yield _body(*((f"small-{n}", _MANY) for n in range(start, min(start + 100, small))))
    for number, left in enumerate(range(rest, 0, -size)):
        yield _body((f"middle-{number}", min(size, left)))


def _body(*topics: tuple[str, int]) -> bytes:
    return msgspec.json.encode(
        {
            "topics": [
                {"name": name, "numPartitions": count, "replicationFactor": 3}
                for name, count in topics
            ]
        }
    )


async def _beat(brokers: SimulatedBrokers, others: set[int]) -> None:
    """Heartbeats of all, a second apart. Who is refused or cut off tries again."""
    number = 0
    while True:
        await asyncio.sleep(1.0 / len(brokers.brokers))
        number = (number + 1) % len(brokers.brokers)
        if number in others:
            continue
        with contextlib.suppress(NoAnswerError, RuntimeError, OSError):
            async with asyncio.timeout(10.0):
                await brokers.beat(number)
