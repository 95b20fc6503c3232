"""The level of a node's log, changed while it runs.

Rule: SIGUSR1 sets the level to debug, and SIGUSR2 restores the level of the configuration file.
Signals need no port and no right except over the process, so they work on a node in trouble.
"""

import asyncio
import signal

from runtime.logging import set_level


def follow_signals(loop: asyncio.AbstractEventLoop, configured: str) -> None:
    """Change the level of this process on SIGUSR1 and SIGUSR2."""
    loop.add_signal_handler(signal.SIGUSR1, set_level, "debug")
    loop.add_signal_handler(signal.SIGUSR2, set_level, configured)
