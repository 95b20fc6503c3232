"""Stops the process at once when our own code has a defect.

Rule: a defect (an unexpected exception, on the loop or on a thread) ends the process with exit code
70 and a traceback on standard error. A node that continued could serve a wrong state; a node that
stops is one failure, which the quorum survives. Errors of the system (`OSError`) are not defects:
the code that gets one decides.

A defect that one request triggers doesn't end the process, because the retried request would end
one node after another. These are an exception in a request's handler (`runtime.http.server`), a
second answer to a request, and an exception in its decision (`controller.leader.proposer`), which
changes no state. The node logs them and continues.
"""

import asyncio
import os
import traceback
from collections.abc import Callable
from typing import Any, Never

EXIT_DEFECT = 70
"""EX_SOFTWARE of sysexits.h."""

OnDefect = Callable[[BaseException], None]


def stop_the_process(error: BaseException) -> Never:
    """Print the traceback and end the process without any further step, from any thread."""
    lines = traceback.format_exception(error)
    text = "a defect stops this process:\n" + "".join(lines)
    # Not through sys.stderr, because a thread that is stuck may hold its lock.
    os.write(2, text.encode(errors="backslashreplace"))
    os._exit(EXIT_DEFECT)


def watch_loop(loop: asyncio.AbstractEventLoop, on_defect: OnDefect = stop_the_process) -> None:
    """Have exceptions of callbacks and timers on `loop` reported as defects.

    Without this, asyncio logs them and continues. It still only logs errors that no callback
    raised, for example an accept that failed because no file descriptor was free.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        in_callback = "handle" in context
        if in_callback and isinstance(error, Exception) and not isinstance(error, OSError):
            on_defect(error)
            return
        loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
