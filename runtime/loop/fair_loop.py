"""An event loop that stays responsive when very many connections are ready at once.

Rule: one pass of the loop handles a few ready sockets, not all, and the preferred ones first.
asyncio handles every ready socket before it looks at its timers again. If a thousand brokers send
requests at once, such a pass takes 0.2 s and more. In that time the node sends no heartbeat of the
quorum and answers no vote. The kernel returns ready sockets in turn (epoll, level-triggered), so no
socket starves.

There are three classes of sockets. Preferred ones come first, and all of them: links between
controllers. Otherwise an acknowledgement would wait behind all other connections, and the leader
would conclude that it is cut off. Hastened ones come next, a few at a time: a broker's heartbeat
doesn't wait behind the requests of users. All others come last, and always get a part of the pass.
"""

import asyncio
import contextlib
import math
import select
import selectors
import socket
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from runtime.loop.slice_meter import SliceMeter
from runtime.loop.stalls import StallMeter

T = TypeVar("T")

READY_MAX = 24
"""The most sockets in one pass, besides the preferred ones: about 5 ms of requests."""
OTHERS_MIN = 4
"""So many sockets that are neither preferred nor hastened have room in every pass."""
POLLED_FOR_S = 0.0005
"""While callbacks are ready, the loop does not poll its sockets again within this time.

One event of the quorum is often three callbacks, each of which schedules the next. A poll between
two of them takes longer than most of them, and finds nothing.
"""


class FewAtATime(selectors.BaseSelector):
    """A selector over epoll: each call of `select` returns a few ready sockets, in turn.

    The preferred, the hastened and the other sockets have an epoll set each. These sets are members
    of one more set, so one poll waits for all sockets and tells which sets have ready ones. Only
    those are polled then.
    """

    def __init__(
        self, polled_for_s: float = 0.0, now: Callable[[], float] = time.monotonic
    ) -> None:
        """A poll that need not wait finds nothing new within `polled_for_s` of the last one.

        `now` returns monotonic seconds.
        """
        self._polled_for_s = polled_for_s
        self._now = now
        self._polled_at = -1e9
        self._all = select.epoll()
        self._epoll = select.epoll()
        self._first = select.epoll()
        self._soon = select.epoll()
        for nested in (self._first, self._soon, self._epoll):
            self._all.register(nested.fileno(), select.EPOLLIN)
        self._first_fd, self._soon_fd = self._first.fileno(), self._soon.fileno()
        self._others_fd = self._epoll.fileno()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._sets: dict[int, select.epoll] = {}
        """The epoll sets of the descriptors that are preferred or hastened."""
        self.meter = SliceMeter()
        """Measures the work between two calls of `select`."""
        self.stalls = StallMeter()
        """Tells how late the loop calls its timers."""

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
            # The kernel has already removed a file that was closed.
            self._of(key.fd).unregister(key.fd)
        self._sets.pop(key.fd, None)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        before = self.get_key(fileobj)
        if events != before.events:
            self._of(before.fd).modify(before.fd, _mask(events))
        key = self._keys[before.fd] = before._replace(events=events, data=data)
        return key

    def prefer(self, fd: int) -> None:
        """Return this descriptor before all others, until it is unregistered."""
        self._move(fd, self._first)

    def hasten(self, fd: int) -> None:
        """Return this descriptor before the others, after the preferred ones.

        This holds until it is unregistered. A descriptor that is not registered now is ignored:
        when it is registered later, it may belong to another connection.
        """
        if fd in self._keys:
            self._move(fd, self._soon)

    def _move(self, fd: int, to: select.epoll) -> None:
        if fd in self._sets:
            return
        key = self._keys.get(fd)
        if key is not None:
            self._epoll.unregister(fd)
            to.register(fd, _mask(key.events))
        self._sets[fd] = to

    def _of(self, fd: int) -> select.epoll:
        return self._sets.get(fd, self._epoll)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        fd = _descriptor(fileobj)
        key = self._keys.get(fd)
        if key is None and fd < 0:
            # A closed file has no number any more. Search for the object itself.
            key = next((key for key in self._keys.values() if key.fileobj is fileobj), None)
        if key is None:
            raise KeyError(f"{fileobj!r} is not registered")
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the ready sockets. The meters measure from the end of a poll to the next one."""
        callbacks_wait = timeout is not None and timeout <= 0
        if callbacks_wait and self._now() < self._polled_at + self._polled_for_s:
            return []
        self.meter.ended()
        ready = self._ready(timeout)
        self.stalls.woke()
        self._polled_at = self._now()
        self.meter.began()
        return ready

    def _ready(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            seconds = -1.0
        else:
            # Round up to epoll's milliseconds, so that the loop's next timer is due afterwards.
            seconds = math.ceil(max(0.0, timeout) * 1e3) * 1e-3
        self.stalls.waits(seconds)
        try:
            events = self._poll(seconds)
        except InterruptedError:
            return []
        ready = []
        for fd, event in events:
            key = self._keys.get(fd)
            if key is not None:
                # An error or a hang-up is reported to reader and writer, whichever is registered.
                writes = selectors.EVENT_WRITE if event & ~select.EPOLLIN else 0
                reads = selectors.EVENT_READ if event & ~select.EPOLLOUT else 0
                ready.append((key, (writes | reads) & key.events))
        return ready

    def _poll(self, seconds: float) -> list[tuple[int, int]]:
        if not self._sets:
            return self._epoll.poll(seconds, READY_MAX)
        ready = {fd for fd, _ in self._all.poll(seconds, 3)}
        first = self._first.poll(0) if self._first_fd in ready else []
        soon = self._soon.poll(0, READY_MAX) if self._soon_fd in ready else []
        if self._others_fd in ready:
            return first + soon + self._epoll.poll(0, max(READY_MAX - len(soon), OTHERS_MIN))
        return first + soon

    def close(self) -> None:
        for each in (self._all, self._first, self._soon, self._epoll):
            each.close()
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
    """Return a new loop with this selector."""
    selector = FewAtATime(POLLED_FOR_S)
    loop = asyncio.SelectorEventLoop(selector)
    _SELECTORS[loop] = selector
    return loop


def run(main: Coroutine[Any, Any, T]) -> T:
    """Do as `asyncio.run`, on such a loop."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def meter() -> SliceMeter | None:
    """Return the slice meter of the running loop; None on another kind of loop."""
    selector = _SELECTORS.get(asyncio.get_running_loop())
    return None if selector is None else selector.meter


def stalls() -> StallMeter | None:
    """Return the stall meter of the running loop; None on another kind of loop."""
    selector = _SELECTORS.get(asyncio.get_running_loop())
    return None if selector is None else selector.stalls


def prefer(sock: socket.socket) -> None:
    """Serve a connection before all others; on another kind of loop, do nothing."""
    selector = _SELECTORS.get(asyncio.get_running_loop())
    if selector is not None:
        selector.prefer(sock.fileno())


def hastener() -> Callable[[int], None]:
    """Return what serves a connection, named by its descriptor, before ordinary ones.

    On another kind of loop it does nothing.
    """
    selector = _SELECTORS.get(asyncio.get_running_loop())
    return _do_nothing if selector is None else selector.hasten


def _do_nothing(fd: int) -> None:
    """Stands for `FewAtATime.hasten` where no selector of ours is."""
