"""Clients of a cluster whose leaders are killed: they change, retry, read back, and keep answers.

Most are programs of their own; some share one `LogbergClient`, which joins their changes.

Rule: a change keeps its request id through all tries, and is tried until it is answered. So at the
end every change is acknowledged, and its offset is known. A client reads each answer's content back
at once, from whichever controller leads then.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import aiohttp
import msgspec

from logberg.client.access import Access
from logberg.client.client import LogbergClient
from metadata.messages import NewTopic
from metadata.uuids import uuid7, uuid_text

CLIENTS = 8
JOINING = 4
"""Those that share a `LogbergClient`."""
_TOGETHER = 3
"""What each of them creates at the same time, each topic as a change of its own."""
_TRY_S = 0.4
_LIMIT_S = 60.0
"""Within which a change is answered, or the run fails."""
_AGAIN_S = 0.005
_REST_S = 0.04
_KEPT = 20
"""Topics that a client lets stand; older ones it deletes."""
_RETRY = frozenset({421, 429, 503})


class LoadError(Exception):
    """A client got an answer that must not be, or none for too long."""


class Acknowledged(NamedTuple):
    """The answer that a client got to one change."""

    request_id: str
    offset: int
    epoch: int
    created: tuple[str, ...]
    deleted: tuple[str, ...]


class Load:
    """Some clients, until they are stopped."""

    def __init__(
        self,
        urls: Sequence[str],
        access: Access,
        seed: int,
        clients: int = CLIENTS,
        joining: int = JOINING,
    ) -> None:
        self._urls = list(urls)
        self._access = access
        self._seed = seed
        self._counts = (clients, joining)
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: list[tuple[int, asyncio.Future[tuple[float, int]]]] = []
        self.acknowledged: list[Acknowledged] = []
        self.answered_at: list[float] = []
        """When each of them was; monotonic."""
        self._highest = 0
        self.tries = 0
        self.read_back = 0

    def start(self) -> None:
        """Let the clients begin."""
        self._tasks = [asyncio.create_task(self._client(n)) for n in range(self._counts[0])]
        self._tasks.append(asyncio.create_task(self._joining_clients()))

    async def stop(self) -> None:
        """Let every client end what it began. Raises LoadError."""
        self._stopping = True
        await asyncio.gather(*self._tasks)

    def abandon(self) -> None:
        """End the clients where they are: the run failed."""
        for task in self._tasks:
            task.cancel()

    def check(self) -> None:
        """Raise what a client met."""
        for task in self._tasks:
            if task.done() and not self._stopping:
                task.result()

    async def commit_after(self, epoch: int) -> tuple[float, int]:
        """Wait until a client gets a commit of a later epoch; return when, and which."""
        told: asyncio.Future[tuple[float, int]] = asyncio.get_running_loop().create_future()
        self._waiting.append((epoch, told))
        while not told.done():
            self.check()
            await asyncio.wait({told}, timeout=1.0)
        return told.result()

    # -- one client ------------------------------------------------------------------------------

    async def _client(self, number: int) -> None:
        dice = random.Random(self._seed * 1000 + number)
        connector = aiohttp.TCPConnector(ssl=self._access.context() or True)
        session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=_TRY_S)
        )
        mine: list[str] = []
        async with session:
            caller = _Caller(self, session, self._urls, self._access, dice)
            for turn in range(1_000_000_000):
                if self._stopping:
                    return
                names = [f"t-{number}-{turn}-{n}" for n in range(dice.choice((1, 1, 3)))]
                await self._create(caller, names, dice)
                mine += names
                await self._see(caller, names[0])
                if len(mine) > _KEPT:
                    count = dice.choice((1, 3))
                    await self._delete(caller, mine[:count])
                    del mine[:count]
                await asyncio.sleep(dice.uniform(0, 2 * _REST_S))

    async def _joining_clients(self) -> None:
        async with LogbergClient(self._urls, self._access, _LIMIT_S, "kills") as client:
            await asyncio.gather(*(self._joining(client, n) for n in range(self._counts[1])))

    async def _joining(self, client: LogbergClient, number: int) -> None:
        """Create some topics at the same time, delete the older ones, and again."""
        dice = random.Random(self._seed * 1000 + CLIENTS + number)
        mine: list[str] = []
        for turn in range(1_000_000_000):
            if self._stopping:
                return
            names = [f"j-{number}-{turn}-{n}" for n in range(_TOGETHER)]
            new = [client.create_topics(NewTopic(name, 1, 1)) for name in names]
            for name, reply in zip(names, await asyncio.gather(*new), strict=True):
                self._told(msgspec.to_builtins(reply), str(reply.request_id), created=(name,))
            mine += names
            old, mine = mine[:-_KEPT], mine[-_KEPT:]
            gone = await asyncio.gather(*(client.delete_topic(name) for name in old))
            for name, deleted in zip(old, gone, strict=True):
                self._told(msgspec.to_builtins(deleted), str(deleted.request_id), deleted=(name,))
            await asyncio.sleep(dice.uniform(0, 2 * _REST_S))

    async def _create(self, caller: "_Caller", names: list[str], dice: random.Random) -> None:
        topics = [
            {
                "name": name,
                "numPartitions": dice.choice((1, 3)),
                "replicationFactor": 1,
            }
            for name in names
        ]
        reply, request_id = await caller.change("POST", {"topics": topics})
        self._told(reply, request_id, created=tuple(names))

    async def _delete(self, caller: "_Caller", names: list[str]) -> None:
        reply, request_id = await caller.change("DELETE", {"names": names})
        self._told(reply, request_id, deleted=tuple(names))

    def _told(
        self,
        reply: dict[str, Any],
        request_id: str,
        *,
        created: tuple[str, ...] = (),
        deleted: tuple[str, ...] = (),
    ) -> None:
        now = time.monotonic()
        self.answered_at.append(now)
        refused = [topic for topic in reply["topics"] if topic["error"] is not None]
        if refused:
            # One id through all tries: a topic can't exist already, nor be gone.
            raise LoadError(f"request {request_id} was executed twice, or lost: {refused}")
        self._highest = max(self._highest, reply["offset"])
        self.acknowledged.append(
            Acknowledged(request_id, reply["offset"], reply["epoch"], created, deleted)
        )
        for after, told in self._waiting:
            if reply["epoch"] > after and not told.done():
                told.set_result((now, reply["epoch"]))
        self._waiting = [(after, told) for after, told in self._waiting if not told.done()]

    async def _see(self, caller: "_Caller", name: str) -> None:
        at_least = self._highest
        reply = await caller.ask("GET", f"/v1/topics/{name}", None, {}, gone=True)
        if reply is None:
            raise LoadError(f"topic {name} was acknowledged, and is not there")
        if reply["offset"] < at_least:
            raise LoadError(f"a read saw offset {reply['offset']} after {at_least} was told")
        self._highest = max(self._highest, reply["offset"])
        self.read_back += 1


class _Caller:
    """Asks whichever controller leads, until it gets an answer."""

    def __init__(
        self,
        load: Load,
        session: aiohttp.ClientSession,
        urls: list[str],
        access: Access,
        dice: random.Random,
    ) -> None:
        self._load = load
        self._session = session
        self._urls = urls
        self._headers = {
            "authorization": f"Bearer {access.token}",
            "accept": "application/json",
            "x-logberg-reason": "leaders are killed",
        }
        self._dice = dice
        self._at = 0

    async def change(self, method: str, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Change topics; return the answer and the request id."""
        drawn = uuid7(time.time_ns() // 1_000_000, self._dice.getrandbits(74))
        request_id = uuid_text(drawn)
        reply = await self.ask(method, "/v1/topics", body, {"x-logberg-request-id": request_id})
        assert reply is not None
        return reply, request_id

    async def ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        headers: dict[str, str],
        *,
        gone: bool = False,
    ) -> dict[str, Any] | None:
        """Ask until it is answered. `gone`: 404 is an answer too, None. Raises LoadError."""
        until = time.monotonic() + _LIMIT_S
        last = "nobody answered"
        while time.monotonic() < until:
            self._load.tries += 1
            url = self._urls[self._at % len(self._urls)]
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                async with self._session.request(
                    method, url + path, json=body, headers={**self._headers, **headers}
                ) as answer:
                    found = msgspec.json.decode(await answer.read())
                    if answer.status == 200:
                        return found
                    if answer.status == 404 and gone:
                        return None
                    if answer.status not in _RETRY:
                        raise LoadError(f"{method} {path} was answered {answer.status}: {found}")
                    last = f"{url}: {found.get('code')}"
                    if found.get("leaderUrl") not in (None, url):
                        self._at = self._urls.index(found["leaderUrl"])
                        continue
            self._at += 1
            await asyncio.sleep(_AGAIN_S)
        raise LoadError(f"{method} {path}: nothing within {_LIMIT_S:.0f} s; {last}")
