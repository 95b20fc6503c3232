"""What a watch sees: a key, the keys of a prefix, or a resource; and how two states differ.

Rule: ZooKeeper tells that something changed, and not how often. So a difference counts changes by
the versions that ZooKeeper counts up, and says `coalesced` when there were, or may have been, more
than it shows. Also when nothing differs: a key that was made and removed between two readings is
reported so.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from coordination.backend import Resource, ResourceEntries, ValueChange, WatchBatch
from coordination.backends.zookeeper import nodes
from coordination.backends.zookeeper.commits import record_of
from coordination.backends.zookeeper.connection import ZooKeeperConnection
from coordination.backends.zookeeper.keys import may_hold
from coordination.backends.zookeeper.node_cache import NodeCache
from coordination.backends.zookeeper.paths import Layout, decoded, queue_name
from coordination.backends.zookeeper.queues import QueuedNode, in_order, revision_of
from coordination.mirrors import S, StateView
from coordination.types import Record, Revision
from coordination.until import Until


class ZooKeeperView(StateView[S], Protocol[S]):
    """Reads the states of one scope, and compares them."""

    async def read(self, link: ZooKeeperConnection, cache: NodeCache, until: Until) -> S:
        """Read the present state."""
        ...


@dataclass(frozen=True, slots=True)
class KeyState:
    """A key, and how often its folder has changed."""

    record: Record | None
    folder_version: int
    folder_zxid: int

    @property
    def revision(self) -> Revision:
        if self.record is not None:
            return self.record.mod_revision
        return Revision(self.folder_zxid)


class KeyView:
    """One key."""

    def __init__(self, layout: Layout, key: str) -> None:
        self._key = key
        self._place = layout.key(key)

    async def read(self, link: ZooKeeperConnection, cache: NodeCache, until: Until) -> KeyState:
        node = await cache.node(self._place.path, until)
        folder = await nodes.stat(link, self._place.folder, until)
        record = None if node is None else record_of(self._key, node)
        if folder is None:
            return KeyState(record, 0, 0)
        return KeyState(record, folder.version, folder.mzxid)

    def whole(self, state: KeyState) -> WatchBatch:
        changes = () if state.record is None else (self._change(state),)
        return WatchBatch("snapshot", state.revision, changes=changes)

    def since(self, after: Revision, state: KeyState) -> WatchBatch | None:
        if state.revision <= after:
            return None
        return WatchBatch("changes", state.revision, coalesced=True, changes=(self._change(state),))

    def difference(self, old: KeyState, new: KeyState) -> WatchBatch | None:
        turns = new.folder_version - old.folder_version
        was, now = old.record, new.record
        if was is None and now is None:
            missed = turns > 0
            if not missed:
                return None
        elif was is not None and now is not None:
            if was.mod_revision == now.mod_revision:
                return None
            same = was.create_revision == now.create_revision
            missed = not same or now.version != was.version + 1
        else:
            missed = turns != 1 or (now is not None and now.version != 1)
        return WatchBatch("changes", new.revision, coalesced=missed, changes=(self._change(new),))

    def _change(self, state: KeyState) -> ValueChange:
        return ValueChange(self._key, state.record, state.revision)


@dataclass(frozen=True, slots=True)
class PrefixState:
    """The keys of a prefix, and the ZnodeStat of each folder that has some."""

    records: dict[str, Record]
    folders: dict[str, Any]

    @property
    def revision(self) -> Revision:
        last = [stat.mzxid for stat in self.folders.values()]
        last += [record.mod_revision for record in self.records.values()]
        return Revision(max(last, default=0))


class PrefixView:
    """All keys that begin with a text."""

    def __init__(self, layout: Layout, prefix: str) -> None:
        self._layout = layout
        self._prefix = prefix

    async def read(self, link: ZooKeeperConnection, cache: NodeCache, until: Until) -> PrefixState:
        records = {}
        folders = {}
        paths = set()
        names, _ = await cache.children(self._layout.keys, until)
        for folder in sorted(decoded(name) for name in names):
            if not may_hold(folder, self._prefix):
                continue
            inside, stat = await cache.children(self._layout.folder(folder), until)
            if stat is not None:
                folders[folder] = stat
            for name in inside:
                key = folder + decoded(name)
                if key.startswith(self._prefix):
                    paths.add(path := self._layout.key(key).path)
                    node = await cache.node(path, until)
                    if node is not None:
                        records[key] = record_of(key, node)
        cache.keep_only(paths)
        return PrefixState(records, folders)

    def whole(self, state: PrefixState) -> WatchBatch:
        return WatchBatch("snapshot", state.revision, changes=_puts(state.records.values()))

    def since(self, after: Revision, state: PrefixState) -> WatchBatch | None:
        if state.revision <= after:
            return None
        if any(stat.pzxid > after for stat in state.folders.values()):
            # Keys that were removed since can't be named: show all that is there.
            changes = _puts(state.records.values())
            return WatchBatch("resync", state.revision, coalesced=True, changes=changes)
        later = (record for record in state.records.values() if record.mod_revision > after)
        return WatchBatch("changes", state.revision, coalesced=True, changes=_puts(later))

    def difference(self, old: PrefixState, new: PrefixState) -> WatchBatch | None:
        changes = []
        missed = False
        turns = dict.fromkeys(new.folders, 0)
        for key in old.records.keys() | new.records.keys():
            was, now = old.records.get(key), new.records.get(key)
            if was == now:
                continue
            folder = key[: key.rfind("/") + 1]
            if was is None or now is None:
                turns[folder] = turns.get(folder, 0) + 1
            elif was.create_revision != now.create_revision or now.version != was.version + 1:
                missed = True
            removed = new.folders[folder].pzxid if folder in new.folders else new.revision
            changes.append(
                ValueChange(key, now, Revision(removed) if now is None else now.mod_revision)
            )
            missed = missed or (was is None and now is not None and now.version != 1)
        for folder, stat in new.folders.items():
            before = old.folders[folder].cversion if folder in old.folders else 0
            others = not self._prefix_covers(folder)
            if stat.cversion - before != turns[folder] and not (others and not turns[folder]):
                missed = True
        if not changes and not missed:
            return None
        changes.sort(key=lambda change: change.revision)
        return WatchBatch("changes", new.revision, coalesced=missed, changes=tuple(changes))

    def _prefix_covers(self, folder: str) -> bool:
        """Whether every key of the folder begins with the prefix."""
        return folder.startswith(self._prefix)


def _puts(records: Any) -> tuple[ValueChange, ...]:
    ordered = sorted(records, key=lambda record: record.mod_revision)
    return tuple(ValueChange(record.key, record, record.mod_revision) for record in ordered)


@dataclass(frozen=True, slots=True)
class QueueState:
    """A resource, and the counts of its changes."""

    entries: ResourceEntries
    turns: int
    versions: dict[int, int]
    """By token: how often the entry's data was changed."""


class QueueView:
    """A group, an election or a lock."""

    def __init__(self, layout: Layout, resource: Resource) -> None:
        self._layout = layout
        self._resource = resource

    async def read(self, link: ZooKeeperConnection, cache: NodeCache, until: Until) -> QueueState:
        queue = self._layout.queue(self._resource)
        names, stat = await cache.children(queue, until)
        found = []
        for name in names:
            parsed = queue_name(name)
            node = await cache.node(f"{queue}/{name}", until)
            if parsed is not None and node is not None:
                found.append(QueuedNode(f"{queue}/{name}", parsed, node))
        cache.keep_only({queued.path for queued in found})
        entries = in_order(self._resource.kind, found)
        return QueueState(
            ResourceEntries(revision_of(stat, entries), entries),
            0 if stat is None else stat.cversion,
            {queued.node.stat.czxid: queued.node.stat.version for queued in found},
        )

    def whole(self, state: QueueState) -> WatchBatch:
        return WatchBatch("snapshot", state.entries.revision, entries=state.entries)

    def since(self, after: Revision, state: QueueState) -> WatchBatch | None:
        if state.entries.revision <= after:
            return None
        return WatchBatch("changes", state.entries.revision, coalesced=True, entries=state.entries)

    def difference(self, old: QueueState, new: QueueState) -> WatchBatch | None:
        if old == new:
            return None
        came_or_went = len(old.versions.keys() ^ new.versions.keys())
        missed = new.turns - old.turns != came_or_went
        for token, version in new.versions.items():
            missed = missed or version > old.versions.get(token, 0) + 1
        return WatchBatch("changes", new.entries.revision, coalesced=missed, entries=new.entries)
