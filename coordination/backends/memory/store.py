"""The state of a store in memory: sessions, queues, keys, and the log of changes.

Rule: every change takes the next revision, and one lock orders all of them, so threads may share a
store. Time comes with each call; the store itself has no clock.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from coordination.backend import (
    Check,
    Claim,
    Commit,
    Committed,
    EntryExists,
    KeyScope,
    Operation,
    PrefixScope,
    Resource,
    ResourceEntries,
    ResourceEntry,
    ValueChange,
    WatchScope,
    count_granted,
)
from coordination.errors import (
    Fenced,
    KeyExists,
    KeyMissing,
    NotHeld,
    RevisionMismatch,
    SessionLost,
)
from coordination.types import Record, Revision, SessionId, Token

HISTORY: Final = 100_000
"""How many changes a watch can look back."""
REQUESTS: Final = 10_000
"""How many request ids are remembered."""
Listener = Callable[[Revision, tuple[ValueChange, ...], Resource | None], None]


@dataclass(slots=True)
class LiveSession:
    """A session that has not ended."""

    ttl_s: float
    expires_s: float


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """An entry of a queue."""

    id: str
    data: bytes
    session: SessionId
    shared: bool
    entered: Revision
    changed: Revision


class MemoryStore:
    """One store."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.revision = Revision(0)
        self.keys: dict[str, Record] = {}
        self.oldest = Revision(0)
        """Changes up to this one are forgotten."""
        self._history: deque[ValueChange] = deque()
        self._sessions: dict[SessionId, LiveSession] = {}
        self._queues: dict[Resource, list[QueuePlace]] = {}
        self._changed: dict[Resource, Revision] = {}
        self._requests: OrderedDict[str, Committed] = OrderedDict()
        self._listeners: dict[KeyScope | Resource, set[Listener]] = {}
        self._prefix_listeners: dict[PrefixScope, set[Listener]] = {}

    @property
    def watchers(self) -> int:
        """How many watches there are."""
        scopes = (*self._listeners.values(), *self._prefix_listeners.values())
        return sum(len(listeners) for listeners in scopes)

    # -- sessions -----------------------------------------------------------------------------

    def open_session(self, ttl_s: float, now_s: float) -> tuple[SessionId, Revision]:
        """Begin a session and return its id and epoch."""
        epoch = self._next()
        session = SessionId(f"memory-{epoch}")
        self._sessions[session] = LiveSession(ttl_s, now_s + ttl_s)
        return session, epoch

    def renew(self, session: SessionId, now_s: float) -> float:
        """Put off a session's end. Raises SessionLost."""
        live = self.live(session)
        live.expires_s = now_s + live.ttl_s
        return live.ttl_s

    def live(self, session: SessionId) -> LiveSession:
        """Return a session that has not ended. Raises SessionLost."""
        live = self._sessions.get(session)
        if live is None:
            raise SessionLost(f"the session {session} is over")
        return live

    def end_session(self, session: SessionId) -> None:
        """End a session and remove its entries."""
        if self._sessions.pop(session, None) is None:
            return
        for resource, queue in list(self._queues.items()):
            self._keep(resource, [place for place in queue if place.session != session])

    def expire(self, now_s: float) -> float | None:
        """End the sessions that are due, and return when the next one is."""
        for session, live in list(self._sessions.items()):
            if live.expires_s <= now_s:
                self.end_session(session)
        return min((live.expires_s for live in self._sessions.values()), default=None)

    # -- queues -------------------------------------------------------------------------------

    def enter(self, claim: Claim) -> ResourceEntry:
        """Put an entry at the end of a queue, or change its data."""
        self.live(claim.session)
        queue = self._queues.get(claim.resource, [])
        at = next((i for i, place in enumerate(queue) if place.id == claim.id), None)
        if at is not None and queue[at].session != claim.session:
            other = self.entries(claim.resource).entries[at]
            raise EntryExists(f"{claim.id!r} is another session's", entry=other)
        revision = self._next()
        entered = revision if at is None else queue[at].entered
        place = QueuePlace(claim.id, claim.data, claim.session, claim.shared, entered, revision)
        at = len(queue) if at is None else at
        self._queues[claim.resource] = [*queue[:at], place, *queue[at + 1 :]]
        self._tell(claim.resource)
        return self.entries(claim.resource).entries[at]

    def change(self, resource: Resource, id_: str, session: SessionId, data: bytes) -> Revision:
        """Change an entry's data. Raises NotHeld."""
        queue = self._queues.get(resource, [])
        at = next((i for i, p in enumerate(queue) if (p.id, p.session) == (id_, session)), None)
        if at is None:
            raise NotHeld(f"{id_!r} isn't this session's")
        was, revision = queue[at], self._next()
        queue[at] = QueuePlace(id_, data, session, was.shared, was.entered, revision)
        self._tell(resource)
        return revision

    def leave(self, resource: Resource, id_: str, session: SessionId, token: Token | None) -> bool:
        """Remove an entry."""
        return self._keep(
            resource,
            [
                place
                for place in self._queues.get(resource, [])
                if (place.id, place.session) != (id_, session)
                or (token is not None and Token(place.entered) != token)
            ],
        )

    def break_grant(self, resource: Resource) -> bool:
        """Remove the granted entries."""
        state = self.entries(resource)
        granted = sum(entry.granted for entry in state.entries)
        return self._keep(resource, self._queues.get(resource, [])[granted:])

    def entries(self, resource: Resource) -> ResourceEntries:
        """Return a queue as it is."""
        queue = self._queues.get(resource, [])
        granted = count_granted(resource.kind, [place.shared for place in queue])
        return ResourceEntries(
            self.revision,
            tuple(
                ResourceEntry(
                    place.id,
                    place.data,
                    place.session,
                    Token(place.entered),
                    place.changed,
                    at < granted,
                    place.shared,
                )
                for at, place in enumerate(queue)
            ),
        )

    def changed(self, resource: Resource) -> Revision:
        """Return the revision of a queue's last change."""
        return self._changed.get(resource, Revision(0))

    # -- keys ---------------------------------------------------------------------------------

    def commit(self, commit: Commit) -> Committed:
        """Check everything, then change everything."""
        if commit.request_id is not None and commit.request_id in self._requests:
            return self._requests[commit.request_id]
        if commit.session is not None:
            self.live(commit.session)
        for index, check in enumerate(commit.checks):
            self._refuse_check(index, check)
        for index, fence in enumerate(commit.fences, len(commit.checks)):
            granted = [e for e in self.entries(fence.resource).entries if e.granted]
            if fence.token not in [entry.token for entry in granted]:
                current = granted[0].token if granted else None
                raise Fenced(
                    f"the present token of {fence.resource.name!r} is {current}",
                    current_token=current,
                    index=index,
                )
        for index, step in enumerate(commit.operations, len(commit.checks) + len(commit.fences)):
            self._refuse_operation(index, step)
        revision = self._next()
        applied = tuple(self._apply(step, revision) for step in commit.operations)
        committed = Committed(revision, applied)
        if commit.request_id is not None:
            self._requests[commit.request_id] = committed
            while len(self._requests) > REQUESTS:
                self._requests.popitem(last=False)
        changed = tuple(change for change in self._history_since(revision - 1))
        if changed:
            self._tell_keys(revision, changed)
        return committed

    def since(self, after: Revision) -> tuple[ValueChange, ...] | None:
        """Return the changes after a revision; None: some are forgotten."""
        return None if after < self.oldest else tuple(self._history_since(after))

    def compact(self, upto: Revision) -> None:
        """Forget the changes up to a revision."""
        while self._history and self._history[0].revision <= upto:
            self._history.popleft()
        self.oldest = max(self.oldest, upto)

    def subscribe(self, scope: WatchScope, listener: Listener) -> None:
        """Call back with each change in the scope, in order, while the lock is held."""
        self._listeners_of(scope).add(listener)

    def unsubscribe(self, scope: WatchScope, listener: Listener) -> None:
        """Don't call back any more."""
        listeners = self._listeners_of(scope)
        listeners.discard(listener)
        if not listeners:
            if isinstance(scope, PrefixScope):
                del self._prefix_listeners[scope]
            else:
                del self._listeners[scope]

    def read(self, scope: KeyScope | PrefixScope) -> Iterable[Record]:
        """Return the records of a scope."""
        if isinstance(scope, KeyScope):
            record = self.keys.get(scope.key)
            return () if record is None else (record,)
        return (record for key, record in self.keys.items() if key.startswith(scope.prefix))

    # -- inside -------------------------------------------------------------------------------

    def _next(self) -> Revision:
        self.revision = Revision(self.revision + 1)
        return self.revision

    def _keep(self, resource: Resource, kept: list[QueuePlace]) -> bool:
        """Make these the queue. False: nothing changed."""
        if len(kept) == len(self._queues.get(resource, [])):
            return False
        if kept:
            self._queues[resource] = kept
        else:
            del self._queues[resource]
        self._next()
        self._tell(resource)
        return True

    def _tell(self, resource: Resource) -> None:
        self._changed[resource] = self.revision
        for listener in list(self._listeners.get(resource, ())):
            listener(self.revision, (), resource)

    def _tell_keys(self, revision: Revision, changes: tuple[ValueChange, ...]) -> None:
        listeners = {
            listener
            for key in {change.key for change in changes}
            for listener in self._listeners.get(KeyScope(key), ())
        }
        for scope, some in self._prefix_listeners.items():
            if any(change.key.startswith(scope.prefix) for change in changes):
                listeners |= some
        for listener in listeners:
            listener(revision, changes, None)

    def _listeners_of(self, scope: WatchScope) -> set[Listener]:
        if isinstance(scope, PrefixScope):
            return self._prefix_listeners.setdefault(scope, set())
        return self._listeners.setdefault(scope, set())

    def _refuse_check(self, index: int, check: Check) -> None:
        record = self.keys.get(check.key)
        if check.mod_revision is None:
            if record is not None:
                raise KeyExists(f"{check.key!r} exists", record=record, index=index)
        elif record is None or record.mod_revision != check.mod_revision:
            current = None if record is None else record.mod_revision
            raise RevisionMismatch(f"{check.key!r} is at {current}", current=current, index=index)

    def _refuse_operation(self, index: int, step: Operation) -> None:
        record = self.keys.get(step.key)
        if step.kind == "put" and record is not None:
            raise KeyExists(f"{step.key!r} exists", record=record, index=index)
        if step.kind == "update" and record is None:
            raise KeyMissing(f"{step.key!r} doesn't exist", index=index)
        if step.expect is not None and (record is not None or step.kind != "delete"):
            current = None if record is None else record.mod_revision
            if current != step.expect:
                raise RevisionMismatch(
                    f"{step.key!r} is at {current}", current=current, index=index
                )

    def _apply(self, step: Operation, revision: Revision) -> bool:
        was = self.keys.get(step.key)
        if step.kind == "delete":
            if was is None:
                return False
            del self.keys[step.key]
            self._remember(ValueChange(step.key, None, revision))
            return True
        record = Record(
            step.key,
            step.data,
            revision if was is None else was.create_revision,
            revision,
            1 if was is None else was.version + 1,
        )
        self.keys[step.key] = record
        self._remember(ValueChange(step.key, record, revision))
        return True

    def _remember(self, change: ValueChange) -> None:
        self._history.append(change)
        while len(self._history) > HISTORY:
            self.oldest = self._history.popleft().revision

    def _history_since(self, after: int) -> Iterable[ValueChange]:
        newest_first = []
        for change in reversed(self._history):
            if change.revision <= after:
                break
            newest_first.append(change)
        return reversed(newest_first)


_STORES: "WeakValueDictionary[str, MemoryStore]" = WeakValueDictionary()
_STORES_LOCK = threading.Lock()


def find_store(name: str) -> MemoryStore:
    """Return the process's store of a name; a new one if nobody uses it."""
    with _STORES_LOCK:
        store = _STORES.get(name)
        if store is None:
            store = _STORES[name] = MemoryStore()
        return store
