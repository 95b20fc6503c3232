"""A process that contends for a lock and an election, holds them for a moment, and writes.

    python -m tests.process.contending_client URL NAME TTL

Rule: it writes before it looks at its clock, with its token and nothing else, as a process does
that was stopped between a check and a write. Only the store can refuse that. Every grant and every
write is a line of its output; times are of the machine's clock, which all processes share.
"""

import asyncio
import json
import os
import random
import sys
from typing import Any

from coordination.backend import Commit, Fence, Operation, Resource
from coordination.connect import connect
from coordination.coordinator import Coordinator
from coordination.election import Term
from coordination.errors import CoordinationError, SessionLost
from coordination.holding import HeldGrant
from coordination.locks import Grant
from runtime.asyncio_clock import of_running_loop
from tests.simulation.coordination_fold import GUARDED

NOTE = "note: "
"""What the lines of its output begin with that are not its log."""
RESOURCES = (Resource("lock", "l"), Resource("election", "e"))
HOLD_S = (0.02, 0.2)
WRITE_EVERY_S = 0.02


def note(what: str, **told: Any) -> None:
    """Say something, at once: the next moment may not come."""
    sys.stdout.write(f"{NOTE}{json.dumps({'what': what, **told})}\n")
    sys.stdout.flush()


async def acquire(client: Coordinator, resource: Resource, name: str) -> Grant | Term:
    """Wait until it is ours."""
    if resource.kind == "lock":
        return await client.lock(resource.name).acquire()
    return await client.election(resource.name).acquire(name)


async def drop(client: Coordinator, resource: Resource, held: Grant | Term) -> None:
    """Give it back, whatever happens."""
    if isinstance(held, Grant):
        await held.drop()
    else:
        await client.election(resource.name).drop(held)


async def write(client: Coordinator, resource: Resource, held: HeldGrant) -> None:
    """Write the token into the key that the resource guards; the store is the only judge."""
    key = f"{GUARDED}{resource.kind}/{resource.name}"
    change = Operation("upsert", key, str(held.token).encode())
    late = of_running_loop().monotonic() >= held.deadline
    try:
        await client.backend.commit(
            Commit(operations=(change,), fences=(Fence(held.full_resource, held.token),))
        )
        outcome = "made"
    except CoordinationError as error:
        outcome = type(error).__name__
    told = {"kind": resource.kind, "token": held.token, "deadline_s": held.deadline}
    note("write", **told, outcome=outcome, late=late)


class Belief:
    """That something is held: said when it begins, and once when it ends."""

    def __init__(self, resource: Resource, held: HeldGrant) -> None:
        self._resource = resource
        self._held = held
        self._over = False
        told = {"kind": resource.kind, "token": held.token, "deadline_s": held.deadline}
        note("granted", **told, since_s=self._now())
        held.signal.on_end(self.end)

    def end(self) -> None:
        """It is over, or will be after the next request. A client that is late was warned."""
        if not self._over:
            self._over = True
            until_s = min(self._now(), self._held.deadline)
            note("over", kind=self._resource.kind, token=self._held.token, until_s=until_s)

    def _now(self) -> float:
        return of_running_loop().monotonic()


async def contend(client: Coordinator, resource: Resource, name: str) -> None:
    """Hold the resource again and again, until the session is over."""
    clock = of_running_loop()
    while True:
        held = await acquire(client, resource, name)
        belief = Belief(resource, held)
        until_s = clock.monotonic() + random.uniform(*HOLD_S)
        while True:
            await write(client, resource, held)
            if not held.held or clock.monotonic() >= until_s:
                break
            await asyncio.sleep(WRITE_EVERY_S)
        belief.end()
        await drop(client, resource, held)
        await write(client, resource, held)
        client.session.check()


async def main(url: str, name: str, ttl_s: float) -> None:
    """Contend until killed; after a lost session, with a new one."""
    note("begin")
    while True:
        try:
            async with (
                connect(url, ttl=ttl_s, request_timeout=5.0) as client,
                asyncio.TaskGroup() as contending,
            ):
                for resource in RESOURCES:
                    contending.create_task(contend(client, resource, f"{name}-{os.getpid()}"))
        except* SessionLost:
            note("lost")
        except* CoordinationError as errors:
            note("error", text=repr(errors.exceptions))
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
