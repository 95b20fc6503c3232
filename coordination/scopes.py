"""What ends once, and bodies that are cancelled when it ends.

Rule: whoever holds something (a session, a lock, a leadership) learns of its end in three ways that
can't disagree, because one object keeps them: `check` raises, the event `over` is set, and a body
inside a scope is cancelled.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType

from coordination.errors import CoordinationError
from runtime.clock import Clock


async def sleep(clock: Clock, delay_s: float) -> None:
    """Wait on the given clock."""
    woken = asyncio.Event()
    timer = clock.call_later(delay_s, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()


class EndSignal:
    """Something that ends once, for a reason that is an error."""

    def __init__(self, parent: "EndSignal | None" = None) -> None:
        """`parent`: what this is a part of; when the parent ends, this ends for the same reason."""
        self.over = asyncio.Event()
        self._error: CoordinationError | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._parent = parent
        if parent is not None:
            parent.on_end(self._end_with_parent)

    def end(self, error: CoordinationError) -> None:
        """End it. What has ended keeps its first reason."""
        if self._error is not None:
            return
        self._error = error
        self.over.set()
        self.part()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def make_error(self) -> CoordinationError | None:
        """Return the reason as a new error, so that each who raises it has its own traceback."""
        return None if self._error is None else type(self._error)(str(self._error))

    def check(self) -> None:
        """Raise the reason if it has ended."""
        if (error := self.make_error()) is not None:
            raise error

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call back once at the end; at once if it has ended."""
        if self._error is not None:
            callback()
        else:
            self._callbacks.append(callback)

    def forget(self, callback: Callable[[], None]) -> None:
        """Don't call back."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    def part(self) -> None:
        """Leave the parent: its end no longer matters."""
        if self._parent is not None:
            self._parent.forget(self._end_with_parent)
            self._parent = None

    def _end_with_parent(self) -> None:
        assert self._parent is not None
        error = self._parent.make_error()
        assert error is not None
        self.end(error)


class CancelScope:
    """Cancels its body when a signal ends, and raises the signal's reason in the body's place.

    As `asyncio.timeout`: a cancellation from elsewhere passes through unchanged.
    """

    def __init__(self, signal: EndSignal, check: Callable[[], None]) -> None:
        """`check` raises if the signal ought to end; both ends of the body ask it."""
        self._signal = signal
        self._check = check
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._cancelled = False

    async def __aenter__(self) -> None:
        self._check()
        self._task = asyncio.current_task()
        assert self._task is not None, "a scope is entered by a task"
        self._cancelling = self._task.cancelling()
        self._signal.on_end(self._end)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        self._signal.forget(self._end)
        assert task is not None
        if self._cancelled and task.uncancel() > self._cancelling:
            return
        if kind is None:
            self._check()
        elif self._cancelled and issubclass(kind, asyncio.CancelledError):
            self._raise_reason(error)

    def _raise_reason(self, cause: BaseException | None) -> None:
        reason = self._signal.make_error()
        assert reason is not None
        raise reason from cause

    def _end(self) -> None:
        if self._task is asyncio.current_task():
            # The body itself found the end. A cancellation now would hit what it awaits next, also
            # outside the scope; so ask again once the body waits.
            asyncio.get_running_loop().call_soon(self._end_later)
        else:
            self._end_later()

    def _end_later(self) -> None:
        if self._task is not None and not self._cancelled:
            self._cancelled = True
            self._task.cancel()
