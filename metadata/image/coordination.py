"""Coordination: sessions, their entries in groups, elections and locks, and keys (KIP-30).

Rule: `queues`, `holdings`, `totals` and the orders are derived, and are in no snapshot and no state
hash. A decision reads only maps, by key. So decisions about coordination share a group, and what
one costs doesn't grow with the state.

Only controllers hold coordination. A snapshot for brokers leaves it out.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Generator
from typing import Final, TypeVar

import msgspec

from metadata.buckets import BucketMap, mix_bytes, mix_row, mix_text, mix_typed_name
from metadata.image.open_maps import BuiltKeys, OpenMap
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    EndSessionRecord,
    EntryRecord,
    KeyRecord,
    RemoveEntryRecord,
    RemoveKeyRecord,
    SessionRecord,
    TokenBaseRecord,
)

CoordinationResource = tuple[int, str]
"""(an `EntryKind`, the name of the group, election or lock)."""
EntryKey = tuple[int, str, str]
"""(an `EntryKind`, the resource's name, the entry's id)."""
Queue = tuple[tuple[int, str], ...]
"""(place, id) of a resource's entries, in order."""
Holdings = tuple[EntryKey, ...]
"""The entries of one session, sorted."""

SESSIONS: Final = "sessions"
ENTRIES: Final = "entries"
KEYS: Final = "keys"
BYTES: Final = "bytes"
"""The names of `totals`. Bytes are those of texts and values, and `_BESIDE` for each thing."""
_BASE: Final = "base"
_BESIDE: Final = 64
K = TypeVar("K")
T = TypeVar("T", tuple[int, str], EntryKey)


class CoordinationImage(msgspec.Struct, frozen=True):
    """The state of coordination. Sessions, entries and keys are their records."""

    sessions: BucketMap[bytes, SessionRecord]
    entries: BucketMap[EntryKey, EntryRecord]
    keys: BucketMap[str, KeyRecord]
    bases: BucketMap[str, TokenBaseRecord]
    queues: BucketMap[CoordinationResource, Queue]
    """By resource; a resource without entries is not there."""
    holdings: BucketMap[bytes, Holdings]
    """By session; a session without entries is not there."""
    totals: BucketMap[str, int]
    """By `SESSIONS` and so on; what there is none of is not there."""
    session_order: SortedKeys[bytes]
    entry_order: SortedKeys[EntryKey]
    key_order: SortedKeys[str]

    def queue(self, resource: CoordinationResource) -> tuple[EntryRecord, ...]:
        """Return the entries of a resource in order; of a group, of which all are members, too."""
        return tuple(self.entries[(*resource, id_)] for _, id_ in self.queues.get(resource, ()))

    def total(self, name: str) -> int:
        """Return how many sessions, entries, keys or bytes there are."""
        return self.totals.get(name, 0)

    @property
    def token_base(self) -> int:
        """What a token is above the offset of its grant."""
        base = self.bases.get(_BASE)
        return 0 if base is None else base.base


EMPTY_COORDINATION = CoordinationImage(
    BucketMap(mix_bytes),
    BucketMap(mix_row),
    BucketMap(mix_text),
    BucketMap(mix_text),
    BucketMap(mix_typed_name),
    BucketMap(mix_bytes),
    BucketMap(mix_text),
    SortedKeys(),
    SortedKeys(),
    SortedKeys(),
)


def is_granted(entry: EntryRecord) -> bool:
    """Return whether an entry is a member, leads, or holds its lock."""
    return entry.token >= 0


class CoordinationDelta:
    """Replays the records of coordination."""

    def __init__(self, image: CoordinationImage) -> None:
        self._image = image
        self.sessions = Overlay(image.sessions)
        self.entries = Overlay(image.entries)
        self.keys = Overlay(image.keys)
        self.bases = Overlay(image.bases)
        self._queues = Overlay(image.queues)
        self._holdings = Overlay(image.holdings)
        self._totals = Overlay(image.totals)

    def apply_in_steps(self) -> Generator[None, None, CoordinationImage]:
        image = self._image
        return CoordinationImage(
            (yield from self.sessions.apply_in_steps()),
            (yield from self.entries.apply_in_steps()),
            (yield from self.keys.apply_in_steps()),
            (yield from self.bases.apply_in_steps()),
            (yield from self._queues.apply_in_steps()),
            (yield from self._holdings.apply_in_steps()),
            (yield from self._totals.apply_in_steps()),
            (yield from image.session_order.changing(self.sessions.changed)),
            (yield from image.entry_order.changing(self.entries.changed)),
            (yield from image.key_order.changing(self.keys.changed)),
        )

    def opened(self, built: Callable[[], CoordinationImage]) -> CoordinationImage:
        """Return the image of what was replayed so far (see `open_maps`)."""
        return CoordinationImage(
            OpenMap(self.sessions, lambda: built().sessions),
            OpenMap(self.entries, lambda: built().entries),
            OpenMap(self.keys, lambda: built().keys),
            OpenMap(self.bases, lambda: built().bases),
            OpenMap(self._queues, lambda: built().queues),
            OpenMap(self._holdings, lambda: built().holdings),
            OpenMap(self._totals, lambda: built().totals),
            BuiltKeys(lambda: built().session_order),
            BuiltKeys(lambda: built().entry_order),
            BuiltKeys(lambda: built().key_order),
        )

    @replays(SessionRecord)
    def open_session(self, record: SessionRecord, offset: int) -> None:
        """Open a session, with an id that no open session has."""
        if record.session_id in self.sessions:
            raise ReplayError(offset, f"session {record.session_id.hex()} is open already")
        self.sessions.set(record.session_id, record)
        self._count(SESSIONS, 1, session_bytes(record))

    @replays(EndSessionRecord)
    def end_session(self, record: EndSessionRecord, offset: int) -> None:
        """End a session that has no entries left."""
        session = self.sessions.get(record.session_id)
        if session is None:
            raise ReplayError(offset, f"there is no session {record.session_id.hex()}")
        if record.session_id in self._holdings:
            raise ReplayError(offset, f"session {record.session_id.hex()} has entries yet")
        self.sessions.remove(record.session_id)
        self._count(SESSIONS, -1, -session_bytes(session))

    @replays(EntryRecord)
    def set_entry(self, record: EntryRecord, offset: int) -> None:
        """Add an entry of an open session, change its data, or grant it."""
        key = (record.kind, record.name, record.id)
        before = self.entries.get(key)
        if before is None:
            if record.session_id not in self.sessions:
                raise ReplayError(offset, f"there is no session {record.session_id.hex()}")
            resource = key[:2]
            queue = list(self._queues.get(resource) or ())
            insort(queue, (record.place, record.id))
            self._queues.set(resource, tuple(queue))
            holdings = list(self._holdings.get(record.session_id) or ())
            insort(holdings, key)
            self._holdings.set(record.session_id, tuple(holdings))
            self._count(ENTRIES, 1, entry_bytes(record))
        elif (before.session_id, before.place) == (record.session_id, record.place):
            self._count(ENTRIES, 0, entry_bytes(record) - entry_bytes(before))
        else:
            raise ReplayError(offset, f"entry {key} is that of another session, or of another time")
        self.entries.set(key, record)

    @replays(RemoveEntryRecord)
    def remove_entry(self, record: RemoveEntryRecord, offset: int) -> None:
        """Remove an entry of a session."""
        key = (record.kind, record.name, record.id)
        entry = self.entries.get(key)
        if entry is None or entry.session_id != record.session_id:
            raise ReplayError(offset, f"session {record.session_id.hex()} has no entry {key}")
        self.entries.remove(key)
        _remove(self._queues, key[:2], (entry.place, entry.id))
        _remove(self._holdings, entry.session_id, key)
        self._count(ENTRIES, -1, -entry_bytes(entry))

    @replays(KeyRecord)
    def set_key(self, record: KeyRecord, offset: int) -> None:
        """Create a key, or change its value."""
        before = self.keys.get(record.key)
        self.keys.set(record.key, record)
        if before is None:
            self._count(KEYS, 1, key_bytes(record))
        else:
            self._count(KEYS, 0, key_bytes(record) - key_bytes(before))

    @replays(RemoveKeyRecord)
    def remove_key(self, record: RemoveKeyRecord, offset: int) -> None:
        """Remove a key."""
        before = self.keys.get(record.key)
        if before is None:
            raise ReplayError(offset, f"there is no key {record.key!r}")
        self.keys.remove(record.key)
        self._count(KEYS, -1, -key_bytes(before))

    @replays(TokenBaseRecord)
    def lift_tokens(self, record: TokenBaseRecord, offset: int) -> None:
        """Lift the tokens of later grants."""
        before = self.bases.get(_BASE)
        lifted_by = 0 if before is None else before.base
        if record.base <= lifted_by:
            raise ReplayError(offset, f"tokens are lifted by {lifted_by} already")
        self.bases.set(_BASE, record)

    def _count(self, what: str, number: int, size: int) -> None:
        for name, more in ((what, number), (BYTES, size)):
            total = (self._totals.get(name) or 0) + more
            if total:
                self._totals.set(name, total)
            else:
                self._totals.remove(name)


def session_bytes(session: SessionRecord) -> int:
    """Return what a session counts in the total of bytes."""
    return _BESIDE + _length(session.owner) + _length(session.client_name)


def entry_bytes(entry: EntryRecord) -> int:
    """Return what an entry counts in the total of bytes."""
    return _BESIDE + _length(entry.name) + _length(entry.id) + len(entry.data)


def key_bytes(key: KeyRecord) -> int:
    """Return what a key counts in the total of bytes."""
    return _BESIDE + _length(key.key) + len(key.value)


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _remove(overlay: Overlay[K, tuple[T, ...]], key: K, item: T) -> None:
    """Remove one of the sorted items of a key, and the key with the last of them."""
    items = overlay.get(key) or ()
    place = bisect_left(items, item)
    assert items[place] == item, item
    if len(items) == 1:
        overlay.remove(key)
    else:
        overlay.set(key, items[:place] + items[place + 1 :])


TABLES: Final = (
    ImageTable("token_bases", "coordination", "bases", itself, "token-base", controllers_only=True),
    ImageTable(
        "sessions",
        "coordination",
        "sessions",
        itself,
        "session",
        ("session_id",),
        controllers_only=True,
    ),
    ImageTable(
        "entries",
        "coordination",
        "entries",
        itself,
        "entry",
        ("kind", "name", "id"),
        controllers_only=True,
    ),
    ImageTable("keys", "coordination", "keys", itself, "key", ("key",), controllers_only=True),
)
