"""Coordination without asyncio: the same interfaces, each call waits for its result.

Rule: one thread runs the event loop of one client, so heartbeats go on while the program computes.
A body can't be cancelled from another thread, so a program checks `term.check()` or `grant.check()`
before each step, and gives its writes the grant as `fence=`.

    with connect_sync("quorum+http://127.0.0.1:9093") as client:
        with client.lock("backup").held() as grant:
            client.storage.upsert("backup/last", "running", fence=grant)
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from coordination import connect as asynchronous
from coordination.coordinator import Coordinator
from coordination.election import LeaderElectionClient, Term
from coordination.listeners import (
    OnGroup,
    OnKeySet,
    OnLeader,
    OnValue,
)
from coordination.locks import Grant, Lock
from coordination.loop_thread import LoopThread
from coordination.membership import GroupMembershipClient
from coordination.semaphores import Semaphore
from coordination.session import Session
from coordination.sync_storage import SyncStorage, SyncWatch
from coordination.types import (
    Capabilities,
    Leader,
    LeaderEvent,
    Member,
    MembershipEvent,
    Revision,
    Token,
)


def connect_sync(url: str, /, **settings: Any) -> "SyncCoordinator":
    """Connect as `coordination.connect.connect` does, with the same settings and errors."""
    thread = LoopThread()
    try:
        coordinator = thread.run(asynchronous.connect(url, **settings).open())
    except BaseException:
        thread.close()
        raise
    return SyncCoordinator(coordinator, thread)


class SyncCoordinator:
    """`Coordinator` for threads."""

    def __init__(self, coordinator: Coordinator, thread: LoopThread) -> None:
        """`thread` runs the coordinator, and ends with it."""
        self._coordinator = coordinator
        self._thread = thread
        self.storage = SyncStorage(coordinator.storage, thread)
        self.listeners = SyncListenerRegistry(coordinator, thread)

    @property
    def capabilities(self) -> Capabilities:
        """What the store offers."""
        return self._coordinator.capabilities

    @property
    def session(self) -> Session:
        """The present session; from other threads only its id, ttl, deadline and `check`."""
        return self._coordinator.session

    def group(self, name: str) -> "SyncGroup":
        """Return a group's client."""
        return SyncGroup(self._thread.call(lambda: self._coordinator.group(name)), self._thread)

    def election(self, service: str) -> "SyncElection":
        """Return an election's client."""
        made = self._thread.call(lambda: self._coordinator.election(service))
        return SyncElection(made, self._thread)

    def lock(self, name: str) -> "SyncLock":
        """Return a lock."""
        return SyncLock(self._thread.call(lambda: self._coordinator.lock(name)), self._thread)

    def semaphore(self, name: str, permits: int) -> "SyncSemaphore":
        """Return a semaphore: a lock for up to `permits` holders."""
        made = self._thread.call(lambda: self._coordinator.semaphore(name, permits))
        return SyncSemaphore(made, self._thread)

    def reopen(self) -> Session:
        """Begin a new session after a loss."""
        return self._thread.run(self._coordinator.reopen())

    def close(self) -> None:
        """Leave, resign, release and end the session; a second call does nothing."""
        try:
            self._thread.run(self._coordinator.aclose())
        except RuntimeError:
            return
        self._thread.close()

    def __enter__(self) -> "SyncCoordinator":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class SyncGroup:
    """`GroupMembershipClient` for threads."""

    def __init__(self, group: GroupMembershipClient, thread: LoopThread) -> None:
        self.group = group.group
        self._group = group
        self._thread = thread

    def join(self, id: str, data: bytes | str = b"", *, rejoin: bool = False) -> Token:  # noqa: A002 - KIP-30's name
        """Become a member; returns the membership's token. Raises MemberExists."""
        return self._thread.run(self._group.join(id, data, rejoin=rejoin)).token

    def leave(self, id: str) -> bool:  # noqa: A002 - KIP-30's name
        """End a membership of this session."""
        return self._thread.run(self._group.leave(id))

    def update(self, id: str, data: bytes | str) -> Revision:  # noqa: A002 - KIP-30's name
        """Change the data of a membership of this session. Raises NotHeld."""
        return self._thread.run(self._group.update(id, data))

    def membership_list(self) -> frozenset[str]:
        """Return the members' ids."""
        return self._thread.run(self._group.membership_list())

    def membership(self) -> Mapping[str, Member]:
        """Return the members by id."""
        return self._thread.run(self._group.membership())

    def watch(
        self, *, after: Revision | None = None, strict: bool = False
    ) -> SyncWatch[MembershipEvent]:
        """Watch the members."""
        return SyncWatch(self._thread, lambda: self._group.watch(after=after, strict=strict))

    def add_listener(self, listener: OnGroup) -> None:
        """Call `on_group_change` on the loop's thread, which it must not hold up."""
        self._thread.call(lambda: self._group.add_listener(listener))

    def remove_listener(self, listener: OnGroup) -> None:
        """Don't call this listener any more."""
        self._thread.call(lambda: self._group.remove_listener(listener))


class SyncElection:
    """`LeaderElectionClient` for threads."""

    def __init__(self, election: LeaderElectionClient, thread: LoopThread) -> None:
        self.service = election.service
        self.resource = election.resource
        self._election = election
        self._thread = thread

    def get_leader(self) -> Leader | None:
        """Return who leads now."""
        return self._thread.run(self._election.get_leader())

    def candidates(self) -> Sequence[Leader]:
        """Return all candidates in the order in which they will lead."""
        return self._thread.run(self._election.candidates())

    def nominate(self, candidate: str, data: bytes | str = b"") -> Term | None:
        """Make a candidate eligible, and return its term if it leads now."""
        return self._thread.run(self._election.nominate(candidate, data))

    def withdraw(self, candidate: str) -> bool:
        """Remove a candidacy of this session."""
        return self._thread.run(self._election.withdraw(candidate))

    def resign(
        self, leader: str, *, token: Token | None = None, stay_candidate: bool = False
    ) -> bool:
        """Stop leading; stop the leader's duties first."""
        resigned = self._election.resign(leader, token=token, stay_candidate=stay_candidate)
        return self._thread.run(resigned)

    @contextmanager
    def campaign(
        self, candidate: str, data: bytes | str = b"", *, timeout: float | None = None
    ) -> Iterator[Term]:
        """Wait for the leadership, lead within the body, and resign.

        The body isn't cancelled at a loss: it calls `term.check()` before each step.
        """
        winning = self._election.acquire(candidate, data, timeout=timeout)
        term = self._thread.run(winning)
        try:
            yield term
        finally:
            self._thread.run(self._election.drop(term))

    def proclaim(self, term: Term, data: bytes | str) -> Revision:
        """Change the leader's data; the token stays. Raises NotHeld, SessionLost."""
        return self._thread.run(term.proclaim(data))

    def watch(
        self, *, after: Revision | None = None, strict: bool = False
    ) -> SyncWatch[LeaderEvent]:
        """Watch who leads."""
        return SyncWatch(self._thread, lambda: self._election.watch(after=after, strict=strict))

    def add_listener(self, listener: OnLeader) -> None:
        """Call `on_leader_change` on the loop's thread, which it must not hold up."""
        self._thread.call(lambda: self._election.add_listener(listener))

    def remove_listener(self, listener: OnLeader) -> None:
        """Don't call this listener any more."""
        self._thread.call(lambda: self._election.remove_listener(listener))


class SyncLock:
    """`Lock` for threads; several threads of one client exclude one another too."""

    def __init__(self, lock: Lock, thread: LoopThread) -> None:
        self.name = lock.name
        self.resource = lock.resource
        self._lock = lock
        self._thread = thread

    def acquire(self, *, timeout: float | None = None, shared: bool = False) -> Grant:
        """Wait for the lock; `release` it afterwards. Raises DeadlineExceeded, SessionLost."""
        return self._thread.run(self._lock.acquire(timeout=timeout, shared=shared))

    def try_acquire(self, *, shared: bool = False) -> Grant | None:
        """Take the lock if it is free."""
        return self._thread.run(self._lock.try_acquire(shared=shared))

    def release(self, grant: Grant) -> bool:
        """Give the lock back. False: it wasn't held any more."""
        return self._thread.run(grant.release())

    @contextmanager
    def held(self, *, timeout: float | None = None, shared: bool = False) -> Iterator[Grant]:
        """Hold the lock within the body, which calls `grant.check()` before each step."""
        grant = self.acquire(timeout=timeout, shared=shared)
        try:
            yield grant
        finally:
            self._thread.run(grant.drop())

    def holder(self) -> Member | None:
        """Return who holds the lock."""
        return self._thread.run(self._lock.holder())

    def break_(self) -> bool:
        """Take the lock from whoever holds it, as an administrator."""
        return self._thread.run(self._lock.break_())


class SyncSemaphore:
    """`Semaphore` for threads."""

    def __init__(self, semaphore: Semaphore, thread: LoopThread) -> None:
        self.name = semaphore.name
        self.permits = semaphore.permits
        self.resource = semaphore.resource
        self._semaphore = semaphore
        self._thread = thread

    def acquire(self, *, timeout: float | None = None) -> Grant:
        """Wait for a permit; `release` it afterwards. Raises DeadlineExceeded, SessionLost."""
        return self._thread.run(self._semaphore.acquire(timeout=timeout))

    def try_acquire(self) -> Grant | None:
        """Take a permit if one is free."""
        return self._thread.run(self._semaphore.try_acquire())

    def release(self, grant: Grant) -> bool:
        """Give a permit back. False: it wasn't held any more."""
        return self._thread.run(grant.release())

    @contextmanager
    def held(self, *, timeout: float | None = None) -> Iterator[Grant]:
        """Hold a permit within the body, which calls `grant.check()` before each step."""
        grant = self.acquire(timeout=timeout)
        try:
            yield grant
        finally:
            self._thread.run(grant.drop())

    def holders(self) -> Sequence[Member]:
        """Return who holds a permit, in the order in which they got it."""
        return self._thread.run(self._semaphore.holders())

    def break_(self) -> bool:
        """Take all permits away, as an administrator."""
        return self._thread.run(self._semaphore.break_())


class SyncListenerRegistry:
    """`ListenerRegistry` for threads. Listeners are called on the loop's thread."""

    def __init__(self, coordinator: Coordinator, thread: LoopThread) -> None:
        self._registry = coordinator.listeners
        self._thread = thread

    def add_value_change_listener(self, key: str, listener: OnValue) -> None:
        """Call `value_changed` with the value, or None, now and after each change of the key."""
        self._thread.call(lambda: self._registry.add_value_change_listener(key, listener))

    def remove_value_change_listener(self, key: str, listener: OnValue) -> None:
        """Don't call this listener any more."""
        self._thread.call(lambda: self._registry.remove_value_change_listener(key, listener))

    def add_key_set_change_listener(
        self, namespace: str, listener: OnKeySet, *, recursive: bool = False
    ) -> None:
        """Call `key_set_changed` with all keys, now and after each that is made or deleted."""
        self._thread.call(
            lambda: self._registry.add_key_set_change_listener(
                namespace, listener, recursive=recursive
            )
        )

    def remove_key_set_change_listener(self, namespace: str, listener: OnKeySet) -> None:
        """Don't call this listener any more."""
        self._thread.call(
            lambda: self._registry.remove_key_set_change_listener(namespace, listener)
        )
