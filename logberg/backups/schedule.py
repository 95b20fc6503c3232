"""Says when a controller makes a backup, and watches how old the newest one is.

Rule: the place itself says when a backup is due, so controllers need not agree on who makes it. All
of them look regularly. The first standby, by node id, makes one as soon as it is due; each other
controller waits for one more look, the leader longest. So the leader makes one only if no standby
does. If two make one at the same time, there are two.

The work is done by somebody else (`start`): in a real node by a process of its own, so that the
node's loop has nothing to do with it.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec
from structlog.typing import FilteringBoundLogger

from runtime.clock import Clock, Timer
from runtime.metrics import Registry

_LOOKS: Final = 10
"""So often a controller looks in the time between two backups."""
_LOOK_LEAST_S: Final = 1.0
_LOOK_MOST_S: Final = 300.0


class Looked(msgspec.Struct, frozen=True):
    """What a look found or made."""

    name: str
    """Of the newest backup there."""
    made_at_ms: int
    log_end: int
    size: int
    made: bool = False
    """This look made it."""
    removed: Sequence[str] = ()


OnLooked = Callable[[Looked | str], None]
"""Called once, with what was found, or with a sentence that says why it failed."""


class Looking(Protocol):
    """Looks at a place, and makes a backup if the newest one is too old."""

    def start(self, older_than_s: float, on_looked: OnLooked) -> None:
        """Begin. Never called while one is under way."""

    def stop(self) -> None:
        """End what is under way; its callback may still come, with a sentence."""


class BackupSchedule:
    """The schedule of one controller."""

    def __init__(
        self,
        clock: Clock,
        every_s: float,
        rank: Callable[[], int | None],
        looking: Looking,
        registry: Registry,
        log: FilteringBoundLogger,
    ) -> None:
        """`rank`: how many others go first; None: this node has nothing to back up now."""
        self._clock = clock
        self._every_s = every_s
        self._look_s = min(max(every_s / _LOOKS, _LOOK_LEAST_S), _LOOK_MOST_S)
        self._rank = rank
        self._looking = looking
        self._log = log
        self._timer: Timer | None = None
        self._began: float | None = None
        self._stopped = True
        self._passed = 0
        """Looks that were due so far."""
        self.newest: Looked | None = None
        """The newest backup that is known to be there."""
        registry.read_gauge(
            "logberg_backup_age_seconds",
            "Time since the newest good backup in the place of scheduled backups was made",
            self._age,
        )
        registry.read_gauge(
            "logberg_backup_every_seconds",
            "The age at which the newest backup is due to be followed by another, as set",
            lambda: every_s,
        )
        registry.read_gauge(
            "logberg_backup_log_end",
            "The end offset of that backup's log",
            self._log_end,
        )
        self._outcomes = registry.counter(
            "logberg_backup_looks_total",
            "Looks at the place of scheduled backups: a backup was made, was there, or failed",
            ("outcome",),
        )
        # Prometheus sees the first one only if the figure was there before.
        for outcome in ("made", "there", "failed"):
            self._outcomes.add(0, outcome)

    def begin(self) -> None:
        """Look from now on."""
        self._stopped = False
        self._timer = self._clock.call_later(self._look_s, self._look)

    def stop(self) -> None:
        """Look no more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._looking.stop()

    def _age(self) -> dict[tuple[str, ...], float]:
        if self.newest is None:
            return {}
        return {(): max(0.0, (self._clock.wall_ms() - self.newest.made_at_ms) / 1000)}

    def _log_end(self) -> dict[tuple[str, ...], float]:
        return {} if self.newest is None else {(): float(self.newest.log_end)}

    def _look(self) -> None:
        self._timer = self._clock.call_later(self._look_s, self._look)
        self._passed += 1
        rank = self._rank()
        if self._began is not None or rank is None:
            return
        if self.newest is None and self._passed <= rank:
            # The place may be empty, and then all would make the first backup at once.
            return
        self._began = self._clock.monotonic()
        self._looking.start(self._every_s + rank * self._look_s, self._looked)

    def _looked(self, found: Looked | str) -> None:
        began, self._began = self._began, None
        if self._stopped or began is None:
            return
        if isinstance(found, str):
            self._outcomes.add(1, "failed")
            self._log.error("backup_failed", why=found)
            return
        self.newest = found
        self._outcomes.add(1, "made" if found.made else "there")
        if found.made:
            self._log.info(
                "backup_made",
                name=found.name,
                log_end=found.log_end,
                bytes=found.size,
                took_s=round(self._clock.monotonic() - began, 3),
            )
        if found.removed:
            self._log.info("backups_removed", names=list(found.removed))


def rank_of(node_id: int, leader: int | None, voters: Sequence[int]) -> int | None:
    """Return how many controllers go before this one: standbys by id, then the leader.

    An observer, which may lack a part of the history, makes no backup.
    """
    order = sorted(voters, key=lambda each: (each == leader, each))
    return order.index(node_id) if node_id in order else None
