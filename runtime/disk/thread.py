"""The one thread that does a disk's slow work, so that the loop never waits for a disk.

Rule: the thread runs one function at a time, in the order of the calls. So syncs and background
work finish in that order, and the journal relies on it to know what is durable. The thread owns no
state: it runs a function and passes the result to the loop.
"""

import queue
import threading
from collections.abc import Callable

from runtime.clock import ThreadsafeClock
from runtime.defects import OnDefect

Work = Callable[[], object]
OnDone = Callable[[object, OSError | None], None]


class DiskThread:
    """A queue of work and the thread that does it. The thread starts with the first work."""

    def __init__(self, name: str, clock: ThreadsafeClock, on_defect: OnDefect) -> None:
        self._name = name
        self._clock = clock
        self._on_defect = on_defect
        self._queue: queue.SimpleQueue[tuple[Work, OnDone | None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, work: Work, on_done: OnDone | None) -> None:
        """Run `work` after everything submitted before, then call `on_done` on the loop.

        An exception other than OSError is passed to `on_defect`, on the thread.
        """
        assert not self._closed, "work for a disk that was closed"
        if self._thread is None:
            # A daemon thread, because a process that ends by an exception must not wait for a disk
            # that doesn't answer.
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._queue.put((work, on_done))

    def close(self) -> None:
        """Finish what was submitted, then end the thread. Blocks."""
        self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, on_done = item
            result: object = None
            error: OSError | None = None
            try:
                result = work()
            except OSError as caught:
                error = caught
            except BaseException as defect:  # noqa: BLE001 - reported, and by default fatal
                self._on_defect(defect)
                continue
            if on_done is not None:
                self._hand_over(on_done, result, error)

    def _hand_over(self, on_done: OnDone, result: object, error: OSError | None) -> None:
        try:
            self._clock.call_soon_threadsafe(lambda: on_done(result, error))
        except RuntimeError:
            # The loop is closed: the process is ending, and nobody waits for the result.
            return
