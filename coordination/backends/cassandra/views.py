"""What a watch sees by polling: keys or a resource; and how two states differ.

Rule: the epoch tells whether anything changed, and the numbers of rows what. A difference is told
as complete only when every number between the two epochs is that of a change that it shows;
otherwise it is `coalesced`. Rows of removed keys stay for a while, so removals are seen too, also
of keys that came and went between two polls.
"""

from dataclasses import dataclass
from typing import Protocol

from coordination.backend import Resource, ResourceEntries, ValueChange, WatchBatch
from coordination.backends.cassandra.queues import CassandraQueues
from coordination.backends.cassandra.spaces import CassandraSpaces, Row, space_of
from coordination.backends.cassandra.storage import CassandraStorage, record_of
from coordination.mirrors import S, StateView
from coordination.types import Revision
from coordination.until import Until


class CassandraView(StateView[S], Protocol[S]):
    """Reads the states of one scope, and compares them."""

    def is_in(self, space: str) -> bool:
        """Whether a change of this space may change the state."""
        ...

    async def epoch(self, until: Until) -> int:
        """A number that is another one whenever the state is."""
        ...

    async def read(self, until: Until) -> S:
        """Read the present state."""
        ...


@dataclass(frozen=True, slots=True)
class KeysState:
    """The rows of the scope's keys, and the epoch up to which they were read."""

    epoch: int
    rows: dict[bytes, Row]


class CassandraKeysView:
    """One key, or all that begin with a text."""

    def __init__(
        self, spaces: CassandraSpaces, storage: CassandraStorage, text: str, *, prefix: bool
    ) -> None:
        self._spaces = spaces
        self._storage = storage
        self._text = text
        self._prefix = prefix

    def is_in(self, space: str) -> bool:
        return space == space_of(self._text) or (self._prefix and "/" not in self._text)

    async def epoch(self, until: Until) -> int:
        names = [space_of(self._text)]
        if self._prefix:
            names = await self._storage.spaces_of(self._text, until)
        return sum([await self._spaces.polled_epoch(name, until) for name in names])

    async def read(self, until: Until) -> KeysState:
        if not self._prefix:
            space = space_of(self._text)
            epoch = await self._spaces.epoch(space, until, serial=False)
            place = ("k", "", self._text.encode())
            rows = await self._spaces.rows(space, [place], until, serial=False)
            return KeysState(epoch, {row.id: row for row in rows.values()})
        last = 0
        found: dict[bytes, Row] = {}
        for space in await self._storage.spaces_of(self._text, until):
            last = max(last, await self._spaces.epoch(space, until, serial=False))
            rows_of = await self._storage.rows_of(space, self._text, until, serial=False)
            found.update((row.id, row) for row in rows_of)
        return KeysState(last, found)

    def whole(self, state: KeysState) -> WatchBatch:
        there = [row for row in state.rows.values() if not row.gone]
        return WatchBatch("snapshot", _reached(state), changes=_changes(there))

    def since(self, after: Revision, state: KeysState) -> WatchBatch | None:
        later = [row for row in state.rows.values() if row.modified > after]
        if not later:
            return None
        return WatchBatch("changes", _reached(state), coalesced=True, changes=_changes(later))

    def difference(self, old: KeysState, new: KeysState) -> WatchBatch | None:
        changed = [row for id_, row in new.rows.items() if row != old.rows.get(id_)]
        # What was there and has no row now was removed so long ago that its row is gone too.
        lost = [row for id_, row in old.rows.items() if id_ not in new.rows and not row.gone]
        if not changed and not lost:
            return None
        missed = bool(lost)
        for row in changed:
            was = old.rows.get(row.id)
            missed = missed or not _follows(was, row, _reached(new) - _reached(old))
        removed = tuple(
            ValueChange(row.id.decode(), None, Revision(max(new.epoch, row.modified)))
            for row in lost
        )
        return WatchBatch(
            "changes", _reached(new), coalesced=missed, changes=_changes(changed) + removed
        )


def _follows(was: Row | None, row: Row, changes: int) -> bool:
    """Whether one change alone can have made this row from that one."""
    was_there = was is not None and not was.gone
    if changes == 1:
        return True
    if row.gone or not was_there or was is None:
        return False
    return row.created == was.created and row.version == was.version + 1


def _reached(state: KeysState) -> Revision:
    return Revision(max([state.epoch, *(row.modified for row in state.rows.values())]))


def _changes(rows: list[Row]) -> tuple[ValueChange, ...]:
    ordered = sorted(rows, key=lambda row: row.modified)
    return tuple(
        ValueChange(row.id.decode(), record_of(row), Revision(row.modified)) for row in ordered
    )


class CassandraQueueView:
    """A group, an election or a lock."""

    def __init__(
        self, spaces: CassandraSpaces, queues: CassandraQueues, resource: Resource
    ) -> None:
        self._spaces = spaces
        self._queues = queues
        self._resource = resource
        self._seen: ResourceEntries | None = None

    def is_in(self, space: str) -> bool:
        return space == space_of(self._resource.name)

    async def epoch(self, until: Until) -> int:
        """Also when no number changed, a session may have ended: that is looked for each time."""
        epoch = await self._spaces.polled_epoch(space_of(self._resource.name), until)
        seen = self._seen
        if seen is not None and seen.revision == epoch:
            if not await self._queues.any_ended(seen, until):
                return epoch
            self._seen = await self._queues.read(self._resource, until)
            return self._seen.revision
        return epoch

    async def read(self, until: Until) -> ResourceEntries:
        self._seen = await self._queues.read(self._resource, until)
        return self._seen

    def whole(self, state: ResourceEntries) -> WatchBatch:
        return WatchBatch("snapshot", state.revision, entries=state)

    def since(self, after: Revision, state: ResourceEntries) -> WatchBatch | None:
        if all(entry.revision <= after for entry in state.entries) and state.revision <= after:
            return None
        return WatchBatch("changes", state.revision, coalesced=True, entries=state)

    def difference(self, old: ResourceEntries, new: ResourceEntries) -> WatchBatch | None:
        if old.entries == new.entries:
            return None
        missed = new.revision - old.revision > 1
        return WatchBatch("changes", new.revision, coalesced=missed, entries=new)
