"""How fast a controller's ledger grows: from looks at its size.

Rule: the rate is that of the last day, or of the time since the first look if that is less. It is
known from ten minutes on. A look is taken when somebody asks, at most once a minute, so nobody who
never asks pays for it.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from ledger.errors import LedgerError
from runtime.clock import Clock

_BETWEEN_S: Final = 60.0
_LEAST_S: Final = 600.0
_DAY_S: Final = 86_400.0


class _Look(NamedTuple):
    at_s: float
    bytes: int
    """What is here."""
    total: int
    """With what the archive holds: archived segments are growth, too."""


class LedgerGrowth:
    """The growth of one node's ledger."""

    def __init__(
        self,
        clock: Clock,
        size: Callable[[], int | None],
        archived: Callable[[], int] = lambda: 0,
    ) -> None:
        """`size`: the ledger's bytes; None while it is not open. It may raise OSError.

        `archived`: the bytes of the segments that are in the archive only.
        """
        self._archived = archived
        self._clock = clock
        self._size = size
        self._looks: deque[_Look] = deque()

    def bytes(self) -> int:
        """Return the ledger's bytes at the last look; 0: not known."""
        self._look()
        return self._looks[-1].bytes if self._looks else 0

    def bytes_a_day(self) -> float | None:
        """Return the rate; None: not known yet."""
        self._look()
        if not self._looks:
            return None
        first, last = self._looks[0], self._looks[-1]
        span = last.at_s - first.at_s
        return (last.total - first.total) / span * _DAY_S if span >= _LEAST_S else None

    def _look(self) -> None:
        now = self._clock.monotonic()
        if self._looks and now - self._looks[-1].at_s < _BETWEEN_S:
            return
        try:
            size = self._size()
        except (OSError, LedgerError):
            # Whoever reads the log reports it.
            return
        if size is None:
            return
        total = size + self._archived()
        if self._looks and total < self._looks[-1].total:
            # The ledger was replaced, by a catch-up.
            self._looks.clear()
        self._looks.append(_Look(now, size, total))
        while len(self._looks) > 2 and now - self._looks[1].at_s >= _DAY_S:
            self._looks.popleft()
