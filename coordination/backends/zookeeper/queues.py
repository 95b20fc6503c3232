"""Groups, elections and locks: ephemeral nodes, in the order in which they were made.

Rule: an entry is one numbered node, whose name says the id, the session and whether it is shared. A
second node makes the id unique. Both are made, and removed, in one transaction; and ZooKeeper
removes both with the session. The token is the zxid at which the entry was made: entries are
granted in that order, so the tokens of grants grow.

A lost reply is resolved by the session in the name: whoever finds an entry of its own session made
it.
"""

import asyncio
from typing import Any, NamedTuple

import kazoo.exceptions as zk

from coordination.backend import (
    Claim,
    EntryExists,
    Fence,
    Resource,
    ResourceEntries,
    ResourceEntry,
)
from coordination.backends.zookeeper import nodes
from coordination.backends.zookeeper.connection import ZooKeeperConnection, session_id
from coordination.backends.zookeeper.nodes import Node, Step, StepFailed
from coordination.backends.zookeeper.paths import Layout, QueueName, encoded, queue_name
from coordination.errors import Fenced, NotHeld, SessionLost
from coordination.types import Revision, SessionId, Token
from coordination.until import ReplyLost, Until

_CALM_READS = 8
"""So often a queue is read anew because it changed meanwhile; then the last reading counts."""


class QueuedNode(NamedTuple):
    """An entry's node."""

    path: str
    name: QueueName
    node: Node


def in_order(kind: str, found: list[QueuedNode]) -> tuple[ResourceEntry, ...]:
    """The entries of a resource as its nodes tell them.

    A node whose owner isn't the session of its name doesn't count: no client of ours made it.
    """
    found = [
        queued
        for queued in found
        if session_id(queued.node.stat.ephemeralOwner) == queued.name.session
    ]
    found.sort(key=lambda queued: queued.node.stat.czxid)
    entries = []
    granted = True
    for place, (_, name, node) in enumerate(found):
        if kind != "group" and place > 0:
            granted = granted and kind == "lock" and name.shared and found[0].name.shared
        entries.append(
            ResourceEntry(
                id=name.id,
                data=node.data,
                session=name.session,
                token=Token(node.stat.czxid),
                revision=Revision(node.stat.mzxid),
                granted=granted,
                shared=name.shared,
            )
        )
    return tuple(entries)


def revision_of(queue: Any, entries: tuple[ResourceEntry, ...]) -> Revision:
    """Of the last change of a resource, from the ZnodeStat of its queue."""
    last = queue.pzxid if queue is not None else 0
    return Revision(max([last, *(entry.revision for entry in entries)]))


class ZooKeeperQueues:
    """The resources below one root."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._own: dict[tuple[Resource, str, SessionId], tuple[str, Token]] = {}
        """What this client entered: the node's path and its token."""

    async def read(
        self, link: ZooKeeperConnection, resource: Resource, until: Until
    ) -> ResourceEntries:
        """Read the whole state of a resource, as it was at one moment."""
        await link.sync(until)
        queue, found = await self._nodes(link, resource, until)
        entries = in_order(resource.kind, found)
        return ResourceEntries(revision_of(queue, entries), entries)

    async def enter(self, link: ZooKeeperConnection, claim: Claim, until: Until) -> ResourceEntry:
        """Raises EntryExists, SessionLost."""
        resource = claim.resource
        path = self._layout.queue_node(resource, claim.id, claim.session, shared=claim.shared)
        steps = (
            Step("create", self._layout.id_node(resource, claim.id), ephemeral=True),
            Step("create", path, claim.data, ephemeral=True, numbered=True),
        )
        tries = 0
        while True:
            tries += 1
            await nodes.pause(until, tries)
            try:
                results = await nodes.multi(link, steps, until)
            except ReplyLost:
                continue
            except StepFailed as failed:
                if isinstance(failed.error, zk.NoNodeError):
                    await nodes.make_folder(link, self._layout.ids(resource), until)
                    await nodes.make_folder(link, self._layout.queue(resource), until)
                    continue
                entry = await self._own_or_other(link, claim, until)
                if entry is not None:
                    return entry
                continue
            return await self._made(link, claim, results[1], until)

    async def change(
        self,
        link: ZooKeeperConnection,
        resource: Resource,
        id_: str,
        data: bytes,
        until: Until,
    ) -> Revision:
        """Raises NotHeld."""
        path = await self._own_path(link, resource, id_, until)
        if path is None:
            raise NotHeld(f"the session has no entry {id_!r} in {resource.kind} {resource.name!r}")
        tries = 0
        while True:
            tries += 1
            await nodes.pause(until, tries)
            try:
                made = await link.change(lambda client: client.set_async(path, data), until)
                return Revision(made.mzxid)
            except ReplyLost:
                continue
            except zk.NoNodeError:
                raise NotHeld(f"the entry {id_!r} is gone") from None

    async def leave(
        self,
        link: ZooKeeperConnection,
        resource: Resource,
        id_: str,
        token: Token | None,
        until: Until,
    ) -> bool:
        """Remove the session's own entry."""
        own = self._own.get((resource, id_, link.session))
        if own is not None and token in (None, own[1]):
            path = own[0]
        else:
            found = await self._own_path(link, resource, id_, until)
            stat = None if found is None else await nodes.stat(link, found, until)
            if found is None or stat is None or token not in (None, stat.czxid):
                return False
            path = found
        removed = await self._remove(link, resource, path, until)
        self._own.pop((resource, id_, link.session), None)
        return removed

    def forget(self, session: SessionId) -> None:
        """The session is over."""
        self._own = {key: own for key, own in self._own.items() if key[2] != session}

    async def break_grant(
        self, link: ZooKeeperConnection, resource: Resource, until: Until
    ) -> bool:
        await link.sync(until)
        _, found = await self._nodes(link, resource, until)
        granted = {entry.token for entry in in_order(resource.kind, found) if entry.granted}
        removed = False
        for queued in found:
            if queued.node.stat.czxid in granted:
                removed |= await self._remove(link, resource, queued.path, until)
        return removed

    async def fence(
        self, link: ZooKeeperConnection, fence: Fence, until: Until, index: int
    ) -> Step:
        """The step that holds a commit to a grant. Raises Fenced when it isn't the present one."""
        _, found = await self._nodes(link, fence.resource, until)
        entries = in_order(fence.resource.kind, found)
        granted = [entry for entry in entries if entry.granted]
        for queued in found:
            if queued.node.stat.czxid == fence.token and any(
                entry.token == fence.token for entry in granted
            ):
                return Step("check", queued.path)
        current = granted[0].token if granted else None
        raise Fenced(
            f"token {fence.token} isn't the present grant of {fence.resource.name!r}",
            current_token=current,
            index=index,
        )

    async def _nodes(
        self, link: ZooKeeperConnection, resource: Resource, until: Until
    ) -> tuple[Any, list[QueuedNode]]:
        queue = self._layout.queue(resource)
        for _ in range(_CALM_READS):
            names, before = await nodes.children(link, queue, until)
            paths = [f"{queue}/{name}" for name in names if queue_name(name)]
            read = await asyncio.gather(*(nodes.get(link, path, until) for path in paths))
            found = [
                QueuedNode(path, name, node)
                for path, node in zip(paths, read, strict=True)
                if node is not None and (name := queue_name(path)) is not None
            ]
            after = await nodes.stat(link, queue, until)
            if after is None or before is None or after.pzxid == before.pzxid:
                break
        return after, found

    async def _made(
        self, link: ZooKeeperConnection, claim: Claim, path: str, until: Until
    ) -> ResourceEntry:
        """Describe the entry that was just made, without reading the others."""
        stat = await nodes.stat(link, path, until)
        mine = queue_name(path)
        if stat is None or mine is None:
            raise SessionLost("the entry was removed as soon as it was made")
        names, _ = await nodes.children(link, self._layout.queue(claim.resource), until)
        self._own[claim.resource, claim.id, claim.session] = (path, Token(stat.czxid))
        others = [other for name in names if (other := queue_name(name)) is not None]
        before = [other for other in others if mine.is_behind(other)]
        granted = claim.resource.kind == "group" or not before
        if claim.resource.kind == "lock" and claim.shared:
            granted = all(other.shared for other in before)
        return ResourceEntry(
            id=claim.id,
            data=claim.data,
            session=claim.session,
            token=Token(stat.czxid),
            revision=Revision(stat.mzxid),
            granted=granted,
            shared=claim.shared,
        )

    async def _own_or_other(
        self, link: ZooKeeperConnection, claim: Claim, until: Until
    ) -> ResourceEntry | None:
        """The id is taken. Return the own entry, with the new data; None: the id is free again.

        Raises EntryExists.
        """
        for entry in (await self.read(link, claim.resource, until)).entries:
            if entry.id != claim.id:
                continue
            if entry.session != claim.session:
                raise EntryExists(f"{claim.id!r} is taken", entry=entry)
            if entry.data == claim.data:
                return entry
            revision = await self.change(link, claim.resource, claim.id, claim.data, until)
            return ResourceEntry(
                id=entry.id,
                data=claim.data,
                session=entry.session,
                token=entry.token,
                revision=revision,
                granted=entry.granted,
                shared=entry.shared,
            )
        return None

    async def _own_path(
        self, link: ZooKeeperConnection, resource: Resource, id_: str, until: Until
    ) -> str | None:
        queue = self._layout.queue(resource)
        begin = f"{encoded(id_)};{link.session};"
        names, _ = await nodes.children(link, queue, until)
        return next((f"{queue}/{name}" for name in names if name.startswith(begin)), None)

    async def _remove(
        self, link: ZooKeeperConnection, resource: Resource, path: str, until: Until
    ) -> bool:
        name = queue_name(path)
        assert name is not None, "only entries are removed"
        steps = (
            Step("delete", path),
            Step("delete", self._layout.id_node(resource, name.id)),
        )
        tries = 0
        while True:
            tries += 1
            await nodes.pause(until, tries)
            try:
                await nodes.multi(link, steps, until)
            except ReplyLost:
                continue
            except StepFailed:
                # After a lost reply it was this call that removed it: nobody else makes the name
                # again.
                return tries > 1
            return True
