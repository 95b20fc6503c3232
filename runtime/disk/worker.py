"""A thread for slow work that is not this node's disk: a folder elsewhere, or object storage.

Rule: work is done in the order of the calls, and results come on the loop. A process that ends does
not wait for work that hangs.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from runtime.clock import ThreadsafeClock
from runtime.defects import OnDefect, stop_the_process
from runtime.disk.thread import DiskThread

T = TypeVar("T")


class Worker:
    """One thread. It starts with the first work."""

    def __init__(
        self, name: str, clock: ThreadsafeClock, on_defect: OnDefect = stop_the_process
    ) -> None:
        self._thread = DiskThread(name, clock, on_defect)

    def run(
        self, work: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]
    ) -> None:
        """Do blocking work on the thread, then call `on_done` on the loop.

        An exception other than OSError is a defect and stops the process.
        """
        self._thread.submit(work, lambda result, error: on_done(cast("T | None", result), error))
