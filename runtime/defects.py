"""What happens when our own code is wrong: the process stops at once, and says so.

Rule: a defect (an exception nobody planned for, on the loop or on a thread) ends the process
with exit code 70 and a traceback on standard error. A node that goes on after one would serve
a state nobody has thought of; a node that stops is one failure, which the quorum survives.
Errors of the system (`OSError`) are no defects: whoever gets one decides.

What one request causes is contained, for it would end one node after another: an exception in a
request's handler (`http_server`), a second answer to it, and an exception in its decision
(`controller.leader.proposer`), which leaves no trace in the state. These are logged, and the node
goes on.
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
    # Not by sys.stderr: its lock may be held by the thread that is stuck.
    os.write(2, text.encode(errors="backslashreplace"))
    os._exit(EXIT_DEFECT)


def watch_loop(loop: asyncio.AbstractEventLoop, on_defect: OnDefect = stop_the_process) -> None:
    """Have exceptions of callbacks and timers on `loop` reported as defects.

    Without this, asyncio logs them and goes on. What it reports without a callback at fault
    (an accept that failed for want of file handles, say) it still only logs.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        in_callback = "handle" in context
        if in_callback and isinstance(error, Exception) and not isinstance(error, OSError):
            on_defect(error)
            return
        loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
