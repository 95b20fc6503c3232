"""An event loop that doesn't let a crowd of connections hold up everybody else.

Rule: one pass of the loop takes up a few ready sockets, not all, and the preferred ones first.
asyncio handles every socket that is ready before it looks at its timers again; when a thousand
brokers ask at once, that is a pass of 0.2 s and more, in which no heartbeat of the quorum leaves
and no vote is answered. The kernel hands out what is ready in turn (epoll, level-triggered), so
nobody starves; links between controllers are preferred, or an acknowledgement would wait until
the whole crowd has had its turn, and the leader would believe itself cut off.
"""

import asyncio
import contextlib
import math
import select
import selectors
import socket
import weakref
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

READY_MAX = 24
"""Sockets in one pass: some 5 ms of requests."""


class FewAtATime(selectors.BaseSelector):
    """Over epoll: a call gives at most `READY_MAX` sockets, the next call the next ones.

    All that are preferred come besides, and first. They are in an epoll set of their own, which
    is itself a member of the other.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._first = select.epoll()
        self._epoll.register(self._first.fileno(), select.EPOLLIN)
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._preferred: set[int] = set()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        fd = _descriptor(fileobj)
        if fd in self._keys:
            raise KeyError(f"{fileobj} is registered already")
        self._of(fd).register(fd, _mask(events))
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._keys.pop(self.get_key(fileobj).fd)
        with contextlib.suppress(OSError):
            # A file that was closed before is not in the kernel's set any more.
            self._of(key.fd).unregister(key.fd)
        self._preferred.discard(key.fd)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        before = self.get_key(fileobj)
        if events != before.events:
            self._of(before.fd).modify(before.fd, _mask(events))
        key = self._keys[before.fd] = before._replace(events=events, data=data)
        return key

    def prefer(self, fd: int) -> None:
        """Give this descriptor first, until it is unregistered."""
        if fd in self._preferred:
            return
        key = self._keys.get(fd)
        if key is not None:
            self._epoll.unregister(fd)
            self._first.register(fd, _mask(key.events))
        self._preferred.add(fd)

    def _of(self, fd: int) -> select.epoll:
        return self._first if fd in self._preferred else self._epoll

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._keys.get(_descriptor(fileobj))
        if key is None:
            # A file that was closed has lost its number.
            key = next((key for key in self._keys.values() if key.fileobj is fileobj), None)
        if key is None:
            raise KeyError(f"{fileobj!r} is not registered")
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            seconds = -1.0
        else:
            # Up to epoll's next millisecond: a timer must be due when the loop looks.
            seconds = math.ceil(max(0.0, timeout) * 1e3) * 1e-3
        try:
            events = self._poll(seconds)
        except InterruptedError:
            return []
        ready = []
        for fd, event in events:
            key = self._keys.get(fd)
            if key is not None:
                # An error or a hang-up is for whoever waits: reader, writer or both.
                writes = selectors.EVENT_WRITE if event & ~select.EPOLLIN else 0
                reads = selectors.EVENT_READ if event & ~select.EPOLLOUT else 0
                ready.append((key, (writes | reads) & key.events))
        return ready

    def _poll(self, seconds: float) -> list[tuple[int, int]]:
        first = self._first.poll(0) if self._preferred else []
        others = self._epoll.poll(0 if first else seconds, READY_MAX)
        if not first and any(fd == self._first.fileno() for fd, _ in others):
            # Something preferred came while we waited.
            first = self._first.poll(0)
        return first + others

    def close(self) -> None:
        self._first.close()
        self._epoll.close()
        self._keys.clear()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def _mask(events: int) -> int:
    reads = select.EPOLLIN if events & selectors.EVENT_READ else 0
    writes = select.EPOLLOUT if events & selectors.EVENT_WRITE else 0
    return reads | writes


_SELECTORS: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, FewAtATime]" = (
    weakref.WeakKeyDictionary()
)


def new_loop() -> asyncio.AbstractEventLoop:
    """Make such a loop."""
    selector = FewAtATime()
    loop = asyncio.SelectorEventLoop(selector)
    _SELECTORS[loop] = selector
    return loop


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on such a loop."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def prefer(sock: socket.socket) -> None:
    """Let a connection's data go before all others'; on another kind of loop, do nothing."""
    selector = _SELECTORS.get(asyncio.get_running_loop())
    if selector is not None:
        selector.prefer(sock.fileno())
