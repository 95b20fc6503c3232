"""Writes: one `multi` for each commit, which holds its conditions, its changes and its receipt.

Rule: what a commit decides from what it read, the `multi` checks again; if that fails, the commit
reads anew. So a stale read never decides. Two things can't be seen from a node's version, as a node
made anew begins at 0 again: that it is still the same node, and that it still isn't there. The
version of the key's folder tells both, since each commit that makes or removes a key sets the
folder too.

The receipt is an ephemeral node with the request's id. When a reply is lost, the receipt tells
whether the commit was made; a request id that comes again finds it and is answered from it.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import kazoo.exceptions as zk

from coordination.backend import Commit, Committed, Operation
from coordination.backends.zookeeper import nodes
from coordination.backends.zookeeper.connection import ZooKeeperConnection
from coordination.backends.zookeeper.nodes import Node, Step, StepFailed
from coordination.backends.zookeeper.paths import KeyPlace, Layout
from coordination.backends.zookeeper.queues import ZooKeeperQueues
from coordination.errors import KeyExists, KeyMissing, RevisionMismatch
from coordination.types import Record, Revision
from coordination.until import ReplyLost, Until
from runtime.randomness import Random

_SPENT_TOGETHER: Final = 32
"""So many receipts that nobody needs any more are removed at once."""
_REMEMBERED: Final = 1000
"""So many request ids of callers a session remembers."""


def record_of(key: str, node: Node) -> Record:
    """A key's record from its node."""
    return Record(
        key=key,
        value=node.data,
        create_revision=Revision(node.stat.czxid),
        mod_revision=Revision(node.stat.mzxid),
        version=node.stat.version + 1,
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a commit read before it decides."""

    folders: dict[str, Any]
    """The ZnodeStat of each folder."""
    keys: dict[str, Node | None]
    """By path."""


class ZooKeeperCommits:
    """The commits of one session."""

    def __init__(
        self, link: ZooKeeperConnection, layout: Layout, queues: ZooKeeperQueues, dice: Random
    ) -> None:
        self._link = link
        self._layout = layout
        self._queues = queues
        self._dice = dice
        self._spent: list[str] = []
        self._remembered: deque[str] = deque()
        self._cleaning: set[asyncio.Task[None]] = set()

    async def commit(self, commit: Commit, until: Until) -> Committed:
        """Raises KeyExists, KeyMissing, RevisionMismatch, Fenced, TxnTooLarge."""
        receipt = self._receipt(commit)
        tries = 0
        while True:
            tries += 1
            await nodes.pause(until, tries)
            done = await self._done(receipt, until) if until.lost or commit.request_id else None
            if done is not None:
                return done
            until.lost = False
            try:
                committed = await self._attempt(commit, receipt, until)
            except (ReplyLost, StepFailed):
                continue
            self._spend(receipt, keep=commit.request_id is not None)
            return committed

    async def _attempt(self, commit: Commit, receipt: str, until: Until) -> Committed:
        seen = await self._read(commit, until)
        steps, applied = await self._plan(commit, seen, until)
        bits = "".join("1" if done else "0" for done in applied)
        steps = [*steps, Step("create", receipt, bits.encode(), ephemeral=True)]
        nodes.check_size(steps)
        try:
            results = await nodes.multi(self._link, steps, until)
        except StepFailed as failed:
            if failed.step == len(steps) - 1 and isinstance(failed.error, zk.NoNodeError):
                await nodes.make_folder(self._link, self._layout.receipts, until)
            raise
        # All steps have the same zxid; only those that set say it at once.
        told = [result.mzxid for result in results if hasattr(result, "mzxid")]
        revision = told[0] if told else (await nodes.stat(self._link, receipt, until)).czxid
        return Committed(Revision(revision), tuple(applied))

    async def _read(self, commit: Commit, until: Until) -> _Seen:
        await self._link.sync(until)
        keys = [check.key for check in commit.checks]
        keys += [operation.key for operation in commit.operations]
        places = [self._layout.key(key) for key in keys]
        # The folders first: what is read of a key then is at least as new as its folder.
        stats = {}
        for folder in {place.folder for place in places}:
            stats[folder] = await nodes.stat(self._link, folder, until)
            if stats[folder] is None:
                await nodes.make_folder(self._link, folder, until)
                stats[folder] = await nodes.stat(self._link, folder, until)
        paths = {place.path for place in places}
        read = await asyncio.gather(*(nodes.get(self._link, path, until) for path in paths))
        return _Seen(stats, dict(zip(paths, read, strict=True)))

    async def _plan(
        self, commit: Commit, seen: _Seen, until: Until
    ) -> tuple[list[Step], list[bool]]:
        """The steps, and which operations change something. Raises a refusal."""
        held: set[str] = set()
        checks: list[Step] = []
        for index, check in enumerate(commit.checks):
            place = self._layout.key(check.key)
            node = seen.keys[place.path]
            _expect(check.key, node, check.mod_revision, index)
            held.add(place.folder)
            if node is not None:
                checks.append(Step("check", place.path, version=node.stat.version))
        index = len(commit.checks)
        for fence in commit.fences:
            checks.append(await self._queues.fence(self._link, fence, until, index))
            index += 1
        changes: list[Step] = []
        turned: set[str] = set()
        applied = []
        for operation in commit.operations:
            place = self._layout.key(operation.key)
            step = _step(operation, place, seen.keys[place.path], index)
            index += 1
            applied.append(step is not None)
            if step is None or operation.expect is not None:
                held.add(place.folder)
            if step is not None:
                changes.append(step)
                if step.kind != "set":
                    turned.add(place.folder)
        checks.extend(
            Step("check", folder, version=seen.folders[folder].version) for folder in sorted(held)
        )
        changes.extend(Step("set", folder) for folder in sorted(turned))
        return checks + changes, applied

    def _receipt(self, commit: Commit) -> str:
        request_id = commit.request_id
        drawn = f"{self._dice.getrandbits(64):016x}"
        # The two can't be the same: a drawn one has another first letter.
        name = f"d{drawn}" if request_id is None else f"r{request_id}"
        return self._layout.receipt(self._link.session, name)

    async def _done(self, receipt: str, until: Until) -> Committed | None:
        await self._link.sync(until)
        node = await nodes.get(self._link, receipt, until)
        if node is None:
            return None
        applied = tuple(bit == "1" for bit in node.data.decode())
        return Committed(Revision(node.stat.czxid), applied)

    def _spend(self, receipt: str, *, keep: bool) -> None:
        """The caller has the reply: remove receipts, many at a time, the rest with the session."""
        if keep:
            if receipt not in self._remembered:
                self._remembered.append(receipt)
            if len(self._remembered) <= _REMEMBERED:
                return
            receipt = self._remembered.popleft()
        self._spent.append(receipt)
        if len(self._spent) >= _SPENT_TOGETHER:
            spent, self._spent = self._spent, []
            task = asyncio.ensure_future(self._clean(spent))
            self._cleaning.add(task)
            task.add_done_callback(self._cleaning.discard)

    async def _clean(self, spent: Iterable[str]) -> None:
        try:
            steps = [Step("delete", path) for path in spent]
            await nodes.multi(self._link, steps, Until.after(5.0))
        except Exception:  # noqa: BLE001 - they end with the session
            return

    async def aclose(self) -> None:
        for task in list(self._cleaning):
            task.cancel()
        await asyncio.gather(*self._cleaning, return_exceptions=True)


def _expect(key: str, node: Node | None, wanted: Revision | None, index: int) -> None:
    current = None if node is None else Revision(node.stat.mzxid)
    if current != wanted:
        raise RevisionMismatch(
            f"{key!r} has revision {current}, not {wanted}", current=current, index=index
        )


def _step(operation: Operation, place: KeyPlace, node: Node | None, index: int) -> Step | None:
    """What an operation does to the key's node; None for a delete that finds nothing."""
    key = operation.key
    if operation.kind == "put" and node is not None:
        raise KeyExists(f"{key!r} is there already", record=record_of(key, node), index=index)
    if operation.kind == "update" and node is None:
        raise KeyMissing(f"{key!r} isn't there", index=index)
    version = -1
    if operation.expect is not None:
        _expect(key, node, operation.expect, index)
        version = -1 if node is None else node.stat.version
    if operation.kind == "delete":
        return None if node is None else Step("delete", place.path, version=version)
    if node is None:
        return Step("create", place.path, operation.data)
    return Step("set", place.path, operation.data, version=version)
