"""The level of a node's log, changed while it runs.

Rule: SIGUSR1 makes a node tell everything (debug), SIGUSR2 puts back what its file says. Signals
need no port and no right but that over the process, so they work on a node that is in trouble.
"""

import asyncio
import signal

from runtime.logging import set_level


def follow_signals(loop: asyncio.AbstractEventLoop, configured: str) -> None:
    """Change the level of this process on SIGUSR1 and SIGUSR2."""
    loop.add_signal_handler(signal.SIGUSR1, set_level, "debug")
    loop.add_signal_handler(signal.SIGUSR2, set_level, configured)
