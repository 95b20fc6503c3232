"""Changes to the queues of groups, elections and locks, with the grants that follow from them.

Rules: every entry of a group is granted. In an election the first entry is; of a lock the first, or
the shared ones with which the queue begins. The entries with a grant are always the first of their
queue. Whoever is next is granted in the batch that makes room, so no client has to ask.

Cost follows the change: a queue is looked at only where an entry comes or goes.
"""

from bisect import bisect_left, insort

import msgspec

from metadata.image.coordination import CoordinationImage as State
from metadata.image.coordination import CoordinationResource, EntryKey, is_granted
from metadata.records import EntryKind, EntryRecord, Record, RemoveEntryRecord

WAITS = -1
"""The token of an entry that waits."""


class QueueChanges:
    """The records of one decision, and the queues after them."""

    def __init__(self, state: State, offset: int) -> None:
        """`offset`: of the first record."""
        self.records: list[Record] = []
        self._state = state
        self._offset = offset
        self._queues: dict[CoordinationResource, list[tuple[int, str]]] = {}
        self._changed: dict[EntryKey, EntryRecord] = {}

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self._offset + len(self.records)

    @property
    def revision(self) -> int:
        """The offset of the last record; without records, the state's."""
        return self.next_offset - 1

    def enter(self, key: EntryKey, session_id: bytes, data: bytes, *, shared: bool) -> EntryRecord:
        """Add an entry behind all others. Returns it."""
        offset = self.next_offset
        resource = key[:2]
        granted = self._is_due_at_end(resource, shared=shared)
        token = self._state.token_base + offset if granted else WAITS
        entry = EntryRecord(*key, session_id, data, shared, offset, token, offset)
        insort(self._queue(resource), (offset, entry.id))
        return self._write(entry)

    def change(self, entry: EntryRecord, data: bytes) -> EntryRecord:
        """Change an entry's data; its grant stays."""
        return self._write(msgspec.structs.replace(entry, data=data, revision=self.next_offset))

    def remove(self, entry: EntryRecord) -> None:
        """Remove an entry, and grant whoever is next."""
        resource = (entry.kind, entry.name)
        queue = self._queue(resource)
        place = bisect_left(queue, (entry.place, entry.id))
        del queue[place]
        self.records.append(RemoveEntryRecord(*resource, entry.id, entry.session_id))
        self._grant_from(resource, place)

    def entry(self, key: EntryKey) -> EntryRecord | None:
        """Return an entry as it is after the records so far."""
        return self._changed.get(key) or self._state.entries.get(key)

    def _queue(self, resource: CoordinationResource) -> list[tuple[int, str]]:
        queue = self._queues.get(resource)
        if queue is None:
            queue = self._queues[resource] = list(self._state.queues.get(resource, ()))
        return queue

    def _at(self, resource: CoordinationResource, place: int) -> EntryRecord:
        found = self.entry((*resource, self._queue(resource)[place][1]))
        assert found is not None
        return found

    def _is_due_at_end(self, resource: CoordinationResource, *, shared: bool) -> bool:
        """Return whether an entry that comes last is granted at once."""
        if resource[0] == EntryKind.GROUP or not self._queue(resource):
            return True
        last = self._at(resource, -1)
        is_lock = resource[0] == EntryKind.LOCK
        return is_lock and shared and last.shared and is_granted(last)

    def _grant_from(self, resource: CoordinationResource, place: int) -> None:
        """Grant the entries from a place on whose turn it is. An entry there has just left."""
        if resource[0] == EntryKind.GROUP:
            return
        queue = self._queue(resource)
        if place > 0:
            before = self._at(resource, place - 1)
            if not (before.shared and is_granted(before)):
                return
        for number in range(place, len(queue)):
            entry = self._at(resource, number)
            if is_granted(entry) or (number > 0 and not entry.shared):
                return
            offset = self.next_offset
            token = self._state.token_base + offset
            self._write(msgspec.structs.replace(entry, token=token, revision=offset))
            if not entry.shared or resource[0] == EntryKind.ELECTION:
                return

    def _write(self, entry: EntryRecord) -> EntryRecord:
        self.records.append(entry)
        self._changed[entry.kind, entry.name, entry.id] = entry
        return entry
