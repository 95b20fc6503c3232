"""A process that ends when its parent does: the kernel kills it (`PR_SET_PDEATHSIG`)."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with(parent: int) -> None:
    """In a new process before its program starts: end it when the thread that started it ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent died before the prctl call.
        os.kill(os.getpid(), signal.SIGKILL)
