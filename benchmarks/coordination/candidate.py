"""`python -m benchmarks.coordination.candidate URL ELECTION TTL`: leads until somebody kills it.

It prints `leads` when it does.
"""

import asyncio
import sys

from coordination.connect import connect


async def lead(url: str, election: str, ttl_s: float) -> None:
    """Lead an election without end."""
    async with connect(url, ttl=ttl_s) as client, client.election(election).campaign("first"):
        print("leads", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(lead(sys.argv[1], sys.argv[2], float(sys.argv[3])))
