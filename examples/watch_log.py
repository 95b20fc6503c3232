"""Follow the log: who changes what, when and why, as it happens.

    logberg up                                  # in another terminal
    python examples/watch_log.py logberg-data   # until Ctrl-C

A watch is a read that waits. It goes on from `next_offset`, so nothing is missed and nothing comes
twice, whichever controller answers.
"""

import asyncio
import contextlib
import sys
from pathlib import Path

from logberg import LogbergClient, find_local_cluster


async def watch(folder: Path) -> None:
    """Print every batch from the log's beginning, then those to come."""
    cluster = find_local_cluster(folder)
    offset = 0
    async with LogbergClient(cluster.controllers, cluster.access, client_id="watch-log") as client:
        while True:
            reply = await client.log(offset, wait_ms=4000)
            for batch in reply.batches:
                names = ", ".join(record.type for record in batch.records)
                reason = f" “{batch.reason}”" if batch.reason else ""
                print(f"{batch.offset} {batch.principal} {batch.operation}{reason}: {names}")
            offset = reply.next_offset


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(watch(Path(sys.argv[1] if len(sys.argv) > 1 else "logberg-data")))
