"""The figures of this process under the names that Prometheus' own clients use: process_*.

Rule: they are read from /proc when they are scraped. So a scrape says how the process is, and
nothing is counted in between. The usual dashboards and alerts for processes know these names.
"""

import math
import os
import resource
import time
from pathlib import Path
from typing import Final, NamedTuple

from runtime.metrics import Registry

_STAT: Final = Path("/proc/self/stat")
_DESCRIPTORS: Final = Path("/proc/self/fd")


class _Stat(NamedTuple):
    """What /proc/self/stat says, in the units of Prometheus."""

    started_s: float
    """After the machine's start."""
    virtual_bytes: int
    resident_bytes: int


def declare(registry: Registry) -> None:
    """Declare the figures."""
    gauge = registry.read_gauge
    registry.read_counter(
        "process_cpu_seconds_total", "Processor time, of user and system", time.process_time
    )
    gauge("process_resident_memory_bytes", "Memory in use", lambda: _stat().resident_bytes)
    gauge("process_virtual_memory_bytes", "Address space in use", lambda: _stat().virtual_bytes)
    gauge("process_open_fds", "Open file descriptors", open_descriptors)
    gauge("process_max_fds", "The most file descriptors that it may open", most_descriptors)
    started = _started()
    gauge("process_start_time_seconds", "When the process started, since 1970", lambda: started)


def open_descriptors() -> int:
    """Return how many descriptors are open."""
    # One of the entries is the descriptor that reads them.
    return sum(1 for _ in _DESCRIPTORS.iterdir()) - 1


def most_descriptors() -> float:
    """Return the soft limit of descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if soft == resource.RLIM_INFINITY else soft


def _stat() -> _Stat:
    # The second field is the program's name in parentheses, which may hold spaces.
    fields = _STAT.read_text().rpartition(")")[2].split()
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    return _Stat(int(fields[19]) / ticks, int(fields[20]), int(fields[21]) * page)


def _started() -> float:
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - _stat().started_s
    return time.time() - age_s
