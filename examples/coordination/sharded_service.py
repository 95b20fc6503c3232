"""A service whose instances share sixteen shards: each instance works on those that fall to it.

    python examples/coordination/sharded_service.py quorum+http://127.0.0.1:9093 node-1 http://n1
    python examples/coordination/sharded_service.py quorum+http://127.0.0.1:9093 node-2 http://n2

Every instance computes the same owners from the same members, by the largest hash, so only the
shards of an instance that comes or goes move. For a moment two instances may see different members:
what must never have two owners takes a lock for each shard, and the lock's token.
"""

import asyncio
import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterable

from logberg import SessionLost, connect

SHARDS = 16


def owner_of(shard: int, members: Iterable[str]) -> str:
    """Return the member to which a shard falls: rendezvous hashing."""
    return max(members, key=lambda id_: hashlib.sha256(f"{shard} {id_}".encode()).digest())


def show(shards: frozenset[int]) -> None:
    """Print the shards of this instance."""
    print("shards", *sorted(shards), flush=True)


async def serve(
    url: str,
    name: str,
    address: str,
    on_shards: Callable[[frozenset[int]], None] = show,
    *,
    ttl: float = 5.0,
) -> None:
    """Join, and report this instance's shards whenever the members change."""
    async with connect(url, ttl=ttl) as coordinator:
        group = coordinator.group("shards")
        while True:
            await group.join(name, address)
            try:
                async with coordinator.session.scope(), group.watch() as events:
                    async for event in events:
                        mine = (s for s in range(SHARDS) if owner_of(s, event.members) == name)
                        on_shards(frozenset(mine) if name in event.members else frozenset())
            except SessionLost:
                on_shards(frozenset())
                await coordinator.reopen()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(sys.argv[1], sys.argv[2], sys.argv[3]))
