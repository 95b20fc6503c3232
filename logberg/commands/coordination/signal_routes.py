"""Where a signal goes while a command holds something, or waits for it.

Rule: no signal ends this process before it has left the queue or given back what it holds.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ROUTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalRoute:
    """Takes the signals that would end this process."""

    def __init__(self) -> None:
        self.ended_by = 0
        """The signal that ended the whole; 0: none did."""
        self._task: asyncio.Task[object] | None = None
        self._to: Callable[[int], None] = self._end

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Take signals in the body: each cancels it, unless it is routed elsewhere."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        for number in ROUTED:
            loop.add_signal_handler(number, self._came, number)
        try:
            yield
        finally:
            for number in ROUTED:
                loop.remove_signal_handler(number)

    @contextmanager
    def to(self, handle: Callable[[int], None]) -> Iterator[None]:
        """Give signals to `handle` in the body."""
        before, self._to = self._to, handle
        try:
            yield
        finally:
            self._to = before

    def _came(self, number: int) -> None:
        self._to(number)

    def _end(self, number: int) -> None:
        assert self._task is not None
        self.ended_by = number
        self._task.cancel()
