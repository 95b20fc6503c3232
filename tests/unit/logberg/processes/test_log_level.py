"""The log's level follows signals while a process runs."""

import asyncio
import io
import os
import signal

from logberg.processes.log_level import follow_signals
from runtime.logging import configure


async def test_usr1_tells_everything_and_usr2_what_is_configured() -> None:
    stream = io.StringIO()
    log = configure("warning", stream=stream)
    follow_signals(asyncio.get_running_loop(), "warning")
    try:
        log.debug("first")
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.sleep(0.01)
        log.debug("second")
        os.kill(os.getpid(), signal.SIGUSR2)
        await asyncio.sleep(0.01)
        log.debug("third")
        log.warning("fourth")
    finally:
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            asyncio.get_running_loop().remove_signal_handler(number)
    told = stream.getvalue()
    assert "second" in told
    assert "fourth" in told
    assert "first" not in told
    assert "third" not in told
