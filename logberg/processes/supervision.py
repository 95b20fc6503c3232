"""Tells the service manager that started this process how it is, from the process's own loop.

Rule: a process is ready once it listens and holds its log, or its saved image. That needs no other
node. If readiness needed a majority, the start of the first controllers would never end, and
`systemctl start` would kill them. The status line says what the node waits for.

If the loop is stuck, the service manager aborts the process. Python then writes where each thread
was, so the log shows what the loop was stuck in.
"""

import faulthandler
from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from runtime.clock import Clock
from runtime.service_manager import ServiceProgress, Supervised, notify_socket


def supervised(
    clock: Clock, look: Callable[[], ServiceProgress], log: FilteringBoundLogger
) -> Supervised | None:
    """Return what reports to the service manager; None: none started this process.

    `look` says how the process is.
    """
    manager = notify_socket()
    if manager is None:
        return None
    if manager.watchdog_s is not None:
        faulthandler.enable()
    log.info("service_manager_found", watchdog_s=manager.watchdog_s)
    return Supervised(manager, clock, look, log)
