"""The process that case C3 stops: it holds a lock, and writes with its grant when it is told to.

    python -m logberg.coordination.testing.child URL '{"namespace": "n", "ttl": 2.0}'

It says `holds` when it has the lock, and then the name of the error of its write, or `wrote`.
"""

import asyncio
import json
import sys

from coordination.connect import connect
from coordination.errors import CoordinationError

SAYS = "child: "
"""What the lines of its output begin with that are not its log."""


def say(word: str) -> None:
    """Print a word for the case."""
    sys.stdout.write(f"{SAYS}{word}\n")
    sys.stdout.flush()


async def main(url: str, namespace: str, ttl: float) -> None:
    """Hold lock `l`; at each line of standard input write key `k` with the grant."""
    async with connect(url, namespace=namespace, ttl=ttl) as client:
        grant = await client.lock("l").try_acquire()
        assert grant is not None, "somebody else holds the lock"
        say("holds")
        while line := await asyncio.to_thread(sys.stdin.readline):
            assert line
            try:
                await client.storage.put("k", b"late", fence=grant)
                said = "wrote"
            except CoordinationError as error:
                said = type(error).__name__
            say(said)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], **json.loads(sys.argv[2])))
