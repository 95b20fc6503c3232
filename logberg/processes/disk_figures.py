"""How a node's disk is: syncs and their times, free space, and in how many days it is full.

Rule: the forecast is the mean of the last day, from samples that a timer takes. A checkpoint makes
the use rise and fall within minutes, so a short look would forecast nonsense. Before there are
samples of an hour, the forecast is NaN: not known.
"""

import math
import os
from collections import deque
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from runtime.clock import Clock
from runtime.metrics import Histogram, Registry

SAMPLE_EVERY_S: Final = 300.0
WINDOW_S: Final = 86_400.0
LEAST_S: Final = 3_600.0
DAY_S: Final = 86_400.0
SYNC_BOUNDS_S: Final = (
    *(0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064),
    *(0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
)


class DiskForecast:
    """Samples of the free space, and what follows from them."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, now_s: float, free_bytes: int) -> None:
        """Keep a sample; those that are older than the window are dropped."""
        self._samples.append((now_s, free_bytes))
        while now_s - self._samples[0][0] > WINDOW_S:
            self._samples.popleft()

    def days_until_full(self) -> float:
        """Return the days at the pace of the window; inf: it doesn't shrink; NaN: not known."""
        if not self._samples:
            return math.nan
        (first_s, first), (last_s, last) = self._samples[0], self._samples[-1]
        took_s = last_s - first_s
        if took_s < LEAST_S:
            return math.nan
        lost = first - last
        return math.inf if lost <= 0 else last / lost * took_s / DAY_S


class DiskFigures:
    """The figures of the file system that holds a node's folder."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        registry: Registry,
        slow_sync_s: float,
        log: FilteringBoundLogger,
    ) -> None:
        """A sync of more than `slow_sync_s` is logged; 0: none is."""
        self._folder = folder
        self._clock = clock
        self._slow_sync_s = slow_sync_s
        self._log = log
        self._forecast = DiskForecast()
        self._syncs: Histogram = registry.histogram(
            "logberg_disk_sync_seconds",
            "Times of the journal's and the ledger's syncs, without the wait for earlier ones",
            SYNC_BOUNDS_S,
        )
        gauge = registry.read_gauge
        gauge(
            "logberg_disk_free_bytes",
            "Free space for this user on the file system of the node's folder",
            lambda: self._space()[0],
        )
        gauge(
            "logberg_disk_size_bytes",
            "Size of that file system",
            lambda: self._space()[1],
        )
        gauge(
            "logberg_disk_full_in_days",
            "When that file system is full at the pace of the last day, in days; "
            "+Inf: it does not fill; NaN: not known in the first hour",
            self._forecast.days_until_full,
        )

    def begin(self) -> None:
        """Take a sample now, and from now on."""
        self._forecast.sample(self._clock.monotonic(), self._space()[0])
        self._clock.call_later(SAMPLE_EVERY_S, self.begin)

    def synced(self, file: str, seconds: float) -> None:
        """Count a sync, and log it if it was slow."""
        self._syncs.observe(seconds)
        if 0 < self._slow_sync_s < seconds:
            self._log.warning("sync_slow", file=file, seconds=round(seconds, 3))

    def _space(self) -> tuple[int, int]:
        """The free bytes and all bytes; zeros if the folder is not there yet."""
        try:
            figures = os.statvfs(self._folder)
        except OSError:
            return 0, 0
        return figures.f_bavail * figures.f_frsize, figures.f_blocks * figures.f_frsize
