"""Small requests that the other modules share: reading nodes, making folders, transactions.

Rule: what kazoo raises for a node that isn't there becomes None here.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import kazoo.exceptions as zk
from kazoo.client import KazooClient

from coordination.backends.zookeeper.connection import ZooKeeperConnection
from coordination.errors import AuthFailed, TxnTooLarge, Unavailable
from coordination.until import Until


class Node(NamedTuple):
    """A node as it was read."""

    data: bytes
    stat: Any
    """kazoo's ZnodeStat."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of ZooKeeper's `multi`."""

    kind: str
    """`create`, `set`, `delete` or `check`."""
    path: str
    data: bytes = b""
    version: int = -1
    ephemeral: bool = False
    numbered: bool = False

    def put_into(self, transaction: Any) -> None:
        if self.kind == "create":
            transaction.create(
                self.path, self.data, ephemeral=self.ephemeral, sequence=self.numbered
            )
        elif self.kind == "set":
            transaction.set_data(self.path, self.data, self.version)
        elif self.kind == "delete":
            transaction.delete(self.path, self.version)
        else:
            transaction.check(self.path, self.version)


class StepFailed(Exception):  # noqa: N818 - within this backend
    """A transaction was refused: this step of it can't be done."""

    def __init__(self, step: int, error: Exception) -> None:
        super().__init__(f"step {step}: {error!r}")
        self.step = step
        self.error = error


async def get(link: ZooKeeperConnection, path: str, until: Until) -> Node | None:
    """Read a node; None: it isn't there."""
    try:
        return Node(*await link.read(lambda client: client.get_async(path), until))
    except zk.NoNodeError:
        return None


async def stat(link: ZooKeeperConnection, path: str, until: Until) -> Any:
    """The node's ZnodeStat, or None."""
    return await link.read(lambda client: client.exists_async(path), until)


async def children(link: ZooKeeperConnection, path: str, until: Until) -> tuple[list[str], Any]:
    """The names of the children, and the node's ZnodeStat; ([], None) if there is no node."""

    def ask(client: KazooClient) -> Any:
        return client.get_children_async(path, include_data=True)

    try:
        names, node_stat = await link.read(ask, until)
    except zk.NoNodeError:
        return [], None
    return names, node_stat


async def make_folder(link: ZooKeeperConnection, path: str, until: Until) -> None:
    """Make a node that stays, and all above it."""
    made = ""
    for part in path.split("/")[1:]:
        made += f"/{part}"
        here = made
        try:
            await link.read(lambda client: client.create_async(here), until)  # noqa: B023 - awaited at once
        except zk.NodeExistsError:
            continue
        except zk.NoAuthError:
            if await stat(link, here, until) is None:
                raise


async def multi(link: ZooKeeperConnection, steps: Sequence[Step], until: Until) -> list[Any]:
    """Do all steps or none. Raises StepFailed, ReplyLost."""

    def begin(client: KazooClient) -> Any:
        transaction = client.transaction()
        for step in steps:
            step.put_into(transaction)
        return transaction.commit_async()

    results: list[Any] = await link.change(begin, until)
    for number, result in enumerate(results):
        if isinstance(result, zk.RolledBackError | zk.RuntimeInconsistency):
            continue
        if isinstance(result, zk.NoAuthError):
            raise AuthFailed(f"ZooKeeper refuses the change of {steps[number].path}")
        if isinstance(result, Exception):
            raise StepFailed(number, result)
    return results


async def pause(until: Until, tries: int) -> None:
    """Wait a little before the next try. Raises Unavailable when the time is over."""
    if until.left_s <= 0:
        raise Unavailable("others changed the same nodes all the time; no try went through")
    if tries > 1:
        await asyncio.sleep(min(until.left_s, 0.002 * tries))


MOST_BYTES = 1_040_000
"""Of one request. ZooKeeper drops the connection of whoever sends more than 1 MiB."""


def check_size(steps: Sequence[Step]) -> None:
    """Refuse what ZooKeeper would drop the connection for. Raises TxnTooLarge."""
    size = sum(len(step.path.encode()) + len(step.data) + 100 for step in steps)
    if size > MOST_BYTES:
        raise TxnTooLarge(f"the transaction has {size} bytes; ZooKeeper takes {MOST_BYTES}")
