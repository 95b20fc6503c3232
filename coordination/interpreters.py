"""From a backend's batches to the events of one kind of watch.

Rule: an interpreter remembers the state that it delivered last, so an event says what changed since
then, also when batches were coalesced in between.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar

from coordination.backend import ResourceEntries, ValueChange, WatchBatch
from coordination.types import (
    EventKind,
    KeySetEvent,
    Leader,
    LeaderEvent,
    Member,
    MembershipEvent,
    Record,
    Revision,
    ValueEvent,
)

E = TypeVar("E", covariant=True)  # noqa: PLC0105 - the conventional name for an event


class Interpreter(Protocol[E]):
    """Turns batches into events, in order."""

    def events(self, batch: WatchBatch) -> Sequence[E]:
        """Return the events of a batch; none if it changes nothing that the watch is about."""
        ...


class KeyInterpreter:
    """Of one key."""

    def __init__(self, key: str) -> None:
        self._key = key

    def events(self, batch: WatchBatch) -> list[ValueEvent]:
        if batch.kind == "progress":
            return []
        if batch.kind != "changes":
            record = batch.changes[-1].record if batch.changes else None
            own = None if record is None else renamed(record, self._key)
            coalesced = batch.coalesced or batch.kind == "resync"
            return [ValueEvent(self._key, own, batch.revision, coalesced, batch.kind)]
        return [value_event(change, self._key, batch) for change in batch.changes]


class PrefixInterpreter:
    """Of all keys of a namespace, one event a key."""

    def __init__(
        self, own_key: Callable[[str], str], prefix: str, *, recursive: bool = True
    ) -> None:
        """`prefix`: as the backend knows it; `recursive`: also what lies deeper than one level."""
        self._own_key = own_key
        self._prefix = prefix
        self._recursive = recursive
        self._known: set[str] = set()

    def events(self, batch: WatchBatch) -> list[ValueEvent]:
        if batch.kind == "progress":
            return []
        changes = [c for c in batch.changes if self._recursive or child(c.key, self._prefix)]
        if batch.kind == "changes":
            for change in changes:
                if change.record is None:
                    self._known.discard(change.key)
                else:
                    self._known.add(change.key)
            return [value_event(c, self._own_key(c.key), batch) for c in changes]
        coalesced = batch.coalesced or batch.kind == "resync"
        present = {c.key: c.record for c in changes if c.record is not None}
        gone, self._known = self._known - present.keys(), set(present)
        return [
            ValueEvent(self._own_key(key), None, batch.revision, coalesced, "resync")
            for key in sorted(gone)
        ] + [
            ValueEvent(
                self._own_key(key),
                renamed(record, self._own_key(key)),
                record.mod_revision if batch.kind == "snapshot" else batch.revision,
                coalesced,
                batch.kind,
            )
            for key, record in present.items()
        ]


class KeySetInterpreter:
    """Of which keys a namespace has; a change of a value is no event."""

    def __init__(
        self,
        namespace: str,
        own_key: Callable[[str], str],
        prefix: str,
        *,
        recursive: bool = False,
    ) -> None:
        self._namespace = namespace
        self._own_key = own_key
        self._prefix = prefix
        self._recursive = recursive
        self._keys: frozenset[str] = frozenset()

    def events(self, batch: WatchBatch) -> list[KeySetEvent]:
        if batch.kind == "progress":
            return []
        keys = set(self._keys) if batch.kind == "changes" else set()
        touched = set()
        for change in batch.changes:
            if not (self._recursive or child(change.key, self._prefix)):
                continue
            key = self._own_key(change.key)
            if change.record is None:
                keys.discard(key)
                touched.add(key)
            else:
                if key not in keys or change.record.create_revision == change.revision:
                    touched.add(key)
                keys.add(key)
        was, self._keys = self._keys, frozenset(keys)
        if batch.kind == "changes" and not touched:
            return []
        kind: EventKind = "change" if batch.kind == "changes" else batch.kind
        return [
            KeySetEvent(
                self._namespace,
                self._keys,
                self._keys - was,
                was - self._keys,
                batch.revision,
                batch.coalesced or kind == "resync",
                kind,
            )
        ]


class MembershipInterpreter:
    """Of a group's members. Without a member before, those that joined after `after` are new."""

    def __init__(self, group: str, after: Revision | None = None) -> None:
        self._group = group
        self._after = after
        self._members: Mapping[str, Member] | None = None

    def events(self, batch: WatchBatch) -> list[MembershipEvent]:
        if batch.entries is None or batch.kind == "progress":
            return []
        was = self._members
        now = members_of(batch.entries)
        self._members = now
        if was is None:
            since = self._after or 0
            joined = frozenset(m.id for m in now.values() if m.token > since)
            left: frozenset[str] = frozenset()
        else:
            if batch.kind == "changes" and now == was and not batch.coalesced:
                return []
            joined = frozenset(i for i, m in now.items() if not same_member(m, was.get(i)))
            left = frozenset(i for i, m in was.items() if not same_member(m, now.get(i)))
        kind: EventKind = "change" if batch.kind == "changes" else batch.kind
        coalesced = batch.coalesced or kind == "resync"
        return [MembershipEvent(self._group, now, joined, left, batch.revision, coalesced, kind)]


class LeaderInterpreter:
    """Of who leads a service."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._last: tuple[Leader | None] | None = None

    def events(self, batch: WatchBatch) -> list[LeaderEvent]:
        if batch.entries is None or batch.kind == "progress":
            return []
        leader = leader_of(batch.entries)
        if batch.kind == "changes" and self._last == (leader,):
            return []
        self._last = (leader,)
        kind: EventKind = "change" if batch.kind == "changes" else batch.kind
        coalesced = batch.coalesced or kind == "resync"
        return [LeaderEvent(self._service, leader, batch.revision, coalesced, kind)]


def child(key: str, prefix: str) -> bool:
    """Whether a key lies right below a prefix, and not deeper."""
    return "/" not in key[len(prefix) :].rstrip("/")


def renamed(record: Record, key: str) -> Record:
    """Return a record with the caller's name of its key."""
    return Record(
        key,
        record.value,
        record.create_revision,
        record.mod_revision,
        record.version,
        record.session,
    )


def value_event(change: ValueChange, key: str, batch: WatchBatch) -> ValueEvent:
    """Return the event of one change."""
    record = None if change.record is None else renamed(change.record, key)
    kind = "put" if record is not None else "delete"
    return ValueEvent(
        key, record, change.revision, batch.coalesced, "put" if kind == "put" else "delete"
    )


def members_of(state: ResourceEntries) -> Mapping[str, Member]:
    """Return a group's members by id."""
    return MappingProxyType(
        {e.id: Member(e.id, e.data, e.token, e.session) for e in state.entries if e.granted}
    )


def leader_of(state: ResourceEntries) -> Leader | None:
    """Return who leads an election."""
    granted = next((e for e in state.entries if e.granted), None)
    return None if granted is None else Leader(granted.id, granted.data, granted.token)


def same_member(one: Member, other: Member | None) -> bool:
    """Whether it is the same membership, maybe with other data."""
    return other is not None and (one.token, one.session) == (other.token, other.session)
