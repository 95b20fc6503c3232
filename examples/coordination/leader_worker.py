"""A worker of which one instance works at a time, and another takes over when it ends or hangs.

    python examples/coordination/leader_worker.py quorum+http://127.0.0.1:9093 worker-1
    python examples/coordination/leader_worker.py quorum+http://127.0.0.1:9093 worker-2

The body of `campaign` is cancelled before another worker can lead. Each write carries the term as
its fence, so a worker that was paused at the wrong moment can't overwrite its successor's work.
"""

import asyncio
import contextlib
import sys

from logberg import Coordinator, SessionLost, Term, connect


async def lead(coordinator: Coordinator, term: Term, pause_s: float) -> None:
    """Do the leader's duties: count on from where the last leader was."""
    last = await coordinator.storage.fetch("reports/made")
    made = int(last.value) if last is not None else 0
    while True:
        made += 1
        await coordinator.storage.upsert("reports/made", str(made), fence=term)
        await asyncio.sleep(pause_s)


async def work(url: str, name: str, *, ttl: float = 5.0, pause_s: float = 1.0) -> None:
    """Wait for the leadership, lead, and begin again after a loss."""
    async with connect(url, ttl=ttl) as coordinator:
        while True:
            try:
                async with coordinator.election("reports").campaign(name) as term:
                    print(f"{name} leads with token {term.token}", flush=True)
                    await lead(coordinator, term, pause_s)
            except SessionLost:
                print(f"{name} lost its session", flush=True)
                await coordinator.reopen()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(work(sys.argv[1], sys.argv[2]))
