"""Reports to systemd, or another service manager, how this process is: readiness, watchdog, status.

Rule: every report is sent by a timer of the event loop that does the work. If that loop is stuck,
the reports end, and the service manager kills the process and starts it again. A thread that sent
them would go on while the loop is stuck.

The protocol is that of sd_notify(3): lines of NAME=value, as one datagram, to the unix socket that
the variable NOTIFY_SOCKET names. WATCHDOG_USEC says how often the service manager must hear from
us. Without NOTIFY_SOCKET nothing is sent.
"""

import os
import socket
import time
from collections.abc import Callable, MutableMapping
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from runtime.clock import Clock, Timer

BEATS_PER_LIMIT: Final = 3
"""So many beats fall into the watchdog's limit, so that a late one does not end the process."""
LOOK_EVERY_S: Final = 0.2
"""How often the status is read: `systemctl start` waits for the moment of readiness."""
MORE_TIME_S: Final = 30.0
"""A start or stop whose loop runs may take as much longer, again with each beat."""
MORE_TIME_EVERY_S: Final = 5.0


class ServiceProgress(NamedTuple):
    """What a process has reached."""

    ready: bool
    """It has done all that it can do without other nodes."""
    stopping: bool
    status: str
    """One line for `systemctl status`."""


class NotifySocket:
    """Where the service manager listens, and what it demands."""

    def __init__(self, address: str | bytes, watchdog_s: float | None) -> None:
        """`watchdog_s`: the longest silence that it accepts; None: any."""
        self.watchdog_s = watchdog_s
        self._address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)

    def send(self, *lines: str) -> None:
        """Send one report. Raises OSError."""
        self._socket.sendto("\n".join(lines).encode(), self._address)

    def close(self) -> None:
        """Close our own socket."""
        self._socket.close()


def notify_socket(environment: MutableMapping[str, str] = os.environ) -> NotifySocket | None:
    """Return the service manager's socket as the environment names it; None: there is none.

    The variables are removed, so that child processes don't report in our name.
    """
    name = environment.pop("NOTIFY_SOCKET", "")
    limit = environment.pop("WATCHDOG_USEC", "")
    whose = environment.pop("WATCHDOG_PID", "")
    if name.startswith("@"):
        address: str | bytes = b"\0" + os.fsencode(name[1:])
    elif name.startswith("/"):
        address = name
    else:
        return None
    ours = not whose or whose == str(os.getpid())
    watched = ours and limit.isdecimal() and int(limit) > 0
    return NotifySocket(address, int(limit) / 1_000_000 if watched else None)


class Supervised:
    """Sends the reports of one process, from its loop."""

    def __init__(
        self,
        manager: NotifySocket,
        clock: Clock,
        look: Callable[[], ServiceProgress],
        log: FilteringBoundLogger,
    ) -> None:
        """`look` says how the process is; it is called on the loop, and must be quick."""
        self._manager = manager
        self._clock = clock
        self._look = look
        self._log = log
        self._said = ServiceProgress(ready=False, stopping=False, status="")
        self._beat_due = self._more_time_due = clock.monotonic()
        self._timer: Timer | None = None
        self._failed = False

    def begin(self) -> None:
        """Report now, and from now on."""
        self._report()
        watchdog_s = self._manager.watchdog_s
        wait_s = LOOK_EVERY_S
        if watchdog_s is not None:
            wait_s = min(wait_s, watchdog_s / BEATS_PER_LIMIT)
        self._timer = self._clock.call_later(wait_s, self.begin)

    def reload(self, reload: Callable[[], None]) -> None:
        """Report that the process reads its configuration again, do that, and report the end."""
        if not self._said.ready:
            # READY=1 after the reload would say too much.
            reload()
            return
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            reload()
        finally:
            self._send("READY=1")

    def end(self) -> None:
        """Report that the process ends; it reports nothing afterwards."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._said.stopping:
            self._send("STOPPING=1")
        self._manager.close()

    def _report(self) -> None:
        now, before = self._look(), self._said
        moment = self._clock.monotonic()
        lines = []
        if now.ready and not before.ready:
            lines.append("READY=1")
        if now.stopping and not before.stopping:
            lines.append("STOPPING=1")
        if now.status != before.status:
            lines.append(f"STATUS={' '.join(now.status.split())}")
        watchdog_s = self._manager.watchdog_s
        if watchdog_s is not None and moment >= self._beat_due:
            lines.append("WATCHDOG=1")
            self._beat_due = moment + watchdog_s / BEATS_PER_LIMIT
        if (not now.ready or now.stopping) and moment >= self._more_time_due:
            lines.append(f"EXTEND_TIMEOUT_USEC={int(MORE_TIME_S * 1_000_000)}")
            self._more_time_due = moment + MORE_TIME_EVERY_S
        if not lines or self._send(*lines):
            # What could not be sent is sent again.
            self._said = ServiceProgress(
                now.ready or before.ready, now.stopping or before.stopping, now.status
            )

    def _send(self, *lines: str) -> bool:
        try:
            self._manager.send(*lines)
        except OSError as error:
            # The service manager restarts, or does not read.
            if not self._failed:
                self._log.warning("service_manager_not_told", why=str(error))
            self._failed = True
            return False
        self._failed = False
        return True
