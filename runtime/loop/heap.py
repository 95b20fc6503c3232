"""Gives memory that was freed back to the operating system.

Rule: code that frees much memory reports it here, and one later call of `malloc_trim` returns it.

glibc keeps freed memory below the top of its heap for the process. After a burst of TLS connections
or bodies almost all of the heap is free and none of it goes back: 500 TLS connections left 25 to
139 MB behind, and `malloc_trim` returned all but 3 MB (measured). The call walks the whole heap
(50 ms for a fragmented GiB, measured), so it runs on a thread, and only after much was freed.
"""

import asyncio
import ctypes
from collections.abc import Callable

TRIM_AFTER_BYTES = 8 * 1024 * 1024
TRIM_DELAY_S = 20.0


class HeapTrimmer:
    """Trims the heap `TRIM_DELAY_S` after `TRIM_AFTER_BYTES` were freed."""

    def __init__(
        self,
        call_later: Callable[[float, Callable[[], None]], object],
        trim: Callable[[], None] | None = None,
    ) -> None:
        self._call_later = call_later
        self._trim = trim if trim is not None else _trim_in_a_thread
        self._freed = 0
        self._is_due = False

    def freed(self, size: int) -> None:
        """Note that about `size` bytes were freed."""
        self._freed += size
        if self._freed >= TRIM_AFTER_BYTES and not self._is_due:
            self._is_due = True
            self._call_later(TRIM_DELAY_S, self._now)

    def _now(self) -> None:
        self._is_due = False
        self._freed = 0
        self._trim()


def _trim_in_a_thread() -> None:
    asyncio.get_running_loop().run_in_executor(None, _malloc_trim)


def _malloc_trim() -> None:
    """Call glibc's function. Other C libraries have none and don't need it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
