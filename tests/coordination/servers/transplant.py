"""Imports a store under test into a quorum: what case F5 needs of a tester.

Rule: it is the command of operators, `logberg import`, on three real controllers of its own.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from coordination.testing.store import Ability, Store
from tests.coordination.servers import quorum

IMPORTED = {
    "etcd": ("--layout", "logberg"),
    "consul": ("--layout", "logberg"),
    "zookeeper": ("--layout", "logberg"),
    "cassandra": (),
}
"""The stores that `logberg import` knows, and what it must be told of their keys."""


@asynccontextmanager
async def importable(store: Store) -> AsyncIterator[Store]:
    """Give a store the ability to be imported, if it is one of `IMPORTED`."""
    async with AsyncExitStack() as started:

        async def transplant() -> Store:
            target = await started.enter_async_context(quorum.open_store())
            await _import(store, target)
            return target

        if store.name in IMPORTED:
            vars(store).update(
                transplant=transplant, abilities=store.abilities | {Ability.TRANSPLANT}
            )
        yield store


async def _import(store: Store, target: Store) -> None:
    """Run the command. The target's URL says where the controllers and their secrets are."""
    there: Any = urlsplit(target.client_url())
    files = parse_qs(there.query)
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "logberg", "import", store.name, store.client_url()),
        *IMPORTED[store.name],
        *("--controllers", ",".join(f"https://{host}" for host in there.netloc.split(","))),
        *("--ca", files["ca"][0], "--token-file", files["token_file"][0], "--timeout", "30"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await command.communicate()
    assert command.returncode == 0, said.decode()
