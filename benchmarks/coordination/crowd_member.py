"""`python -m benchmarks.coordination.crowd_member URL FIRST CLIENTS WATCHES KEYS FILE`.

A part of a crowd. It opens so many clients, each with a session and so many watches, and prints
`ready`. It notes when each change arrives, until a line comes on its input. Then it writes what it
saw, a `SeenByMember` in MessagePack, to the file. The watches of all clients go over the keys in
turn.
"""

import asyncio
import gc
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.coordination.quiet_log import log_only_warnings
from coordination.connect import connect
from coordination.coordinator import Coordinator
from coordination.types import SessionState

TTL_S: Final = 10.0
_REQUEST_S: Final = 15.0
_OPENING: Final = 16
"""So many clients begin at a time."""


class SeenByMember(msgspec.Struct):
    """What one member saw, with times in seconds of the machine's monotonic clock."""

    arrived: list[tuple[int, int, float]] = []
    """Key, revision, time."""
    coalesced: int = 0
    """Events that stand for several changes."""
    lost: int = 0
    """Sessions."""
    cpu_s: float = 0.0
    """From the moment when all was open."""


class CrowdMember:
    """The clients of one process."""

    def __init__(self, url: str, watches: int, keys: int) -> None:
        self.seen = SeenByMember()
        self._url = url
        self._watches = watches
        self._keys = keys
        self._room = asyncio.Semaphore(_OPENING)
        self._clients: list[Coordinator] = []
        self._watching: list[asyncio.Task[None]] = []

    async def run(self, first: int, count: int) -> None:
        """Open the clients, and watch until a line comes."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._stop_watching)
            await asyncio.gather(
                *(self._begin(stack, number) for number in range(first, first + count))
            )
            # As in `benchmarks.peers`: the load's own garbage collector would delay all news.
            gc.collect()
            gc.freeze()
            gc.disable()
            print("ready", flush=True)
            began_s = time.process_time()
            await asyncio.to_thread(sys.stdin.readline)
            self.seen.cpu_s = time.process_time() - began_s
            states = [client.session.state for client in self._clients]
            self.seen.lost = sum(state is SessionState.LOST for state in states)
            # The clients close after the watches: an exit stack ends with what began first.
            await self._stop_watching()

    async def _stop_watching(self) -> None:
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)

    async def _begin(self, stack: AsyncExitStack, number: int) -> None:
        async with self._room:
            client = await connect(self._url, ttl=TTL_S, request_timeout=_REQUEST_S)
            stack.push_async_callback(client.aclose)
            self._clients.append(client)
            begin = number * self._watches
            keys = [place % self._keys for place in range(begin, begin + self._watches)]
            begun = [asyncio.Event() for _ in keys]
            self._watching += [
                asyncio.create_task(self._watch(client, key, event))
                for key, event in zip(keys, begun, strict=True)
            ]
            await asyncio.gather(*(event.wait() for event in begun))

    async def _watch(self, client: Coordinator, key: int, begun: asyncio.Event) -> None:
        async with client.storage.watch(key_name(key)) as watch:
            async for event in watch:
                if event.record is not None:
                    entry = (key, event.record.mod_revision, time.monotonic())
                    self.seen.arrived.append(entry)
                    self.seen.coalesced += event.coalesced
                begun.set()


def key_name(key: int) -> str:
    """Return the name of a key by its number."""
    return f"crowd/{key:05d}"


def main() -> None:
    """Run one member."""
    url, first, count, watches, keys, file = sys.argv[1:]
    log_only_warnings()
    gc.set_threshold(100_000)

    async def run() -> SeenByMember:
        member = CrowdMember(url, int(watches), int(keys))
        await member.run(int(first), int(count))
        return member.seen

    Path(file).write_bytes(msgspec.msgpack.encode(asyncio.run(run())))


if __name__ == "__main__":
    main()
