"""Reports what this controller counted to the leader, until the log has it.

Rules:

- One report is under way at a time. It is sent again, as it is, until the image shows it. What is
  counted meanwhile waits for the next one. So each attempt is written once, whatever is lost or
  comes twice.
- The first report of a quiet time goes soon, others at the interval. There is no timer while there
  is nothing to report.
- What is not reported when the process ends is lost.
"""

from collections.abc import Callable
from typing import Final

from controller.trail.counting import AttemptCounts
from controller.trail.reports import cut_report, encode_report
from metadata.features import ATTEMPTS_FROM, LOGBERG_VERSION
from metadata.image import MetadataImage
from metadata.image.attempts import AttemptsImage
from metadata.records import AttemptsRecord
from quorum.api import LeaderAndEpoch, Quorum
from runtime.clock import Clock, Timer

SOON_S: Final = 1.0
"""The first attempt of a quiet time is reported after so long."""
_LEVEL_AGAIN_S: Final = 60.0
"""How often to look whether the log may hold reports by now."""
TakeReport = Callable[[int, bytes], None]
"""The leader's own part takes a controller's report."""


class Reporting:
    """One controller's reports."""

    def __init__(
        self,
        clock: Clock,
        node_id: int,
        life: bytes,
        interval_s: float,
        counts: AttemptCounts,
        quorum: Quorum,
        image: Callable[[], MetadataImage],
        take_own: TakeReport,
    ) -> None:
        """`life`: drawn for this process. `take_own` is used while this node leads."""
        self._clock = clock
        self._node_id = node_id
        self._life = life
        self._interval_s = interval_s
        self._counts = counts
        self._quorum = quorum
        self._image = image
        self._take_own = take_own
        self._number = 0
        self._total = 0
        self._under_way: tuple[AttemptsRecord, ...] = ()
        self._seen: AttemptsImage | None = None
        self._cut_at = -1e9
        self._timer: Timer | None = None
        self._stopped = False
        self.written = 0
        """For metrics: attempts of this process that the log has."""

    def wake(self) -> None:
        """Something was counted."""
        if self._timer is None and not self._stopped:
            due_s = self._cut_at + self._interval_s - self._clock.monotonic()
            self._timer = self._clock.call_later(max(SOON_S, due_s), self._fire)

    def on_progress(self) -> None:
        """The image is a newer one: the report may be in it."""
        if not self._under_way:
            return
        attempts = self._image().attempts
        if attempts is self._seen:
            return
        self._seen = attempts
        if attempts.has(self._life, self._number):
            self.written = self._total
            self._under_way = ()
            if len(self._counts):
                self._stop_timer()
                self.wake()

    def on_leader(self) -> None:
        """Another leader gets the report at once."""
        if self._under_way:
            self._send()

    def stop(self) -> None:
        """The controller stops."""
        self._stopped = True
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        wait_s = self._interval_s
        if not self._under_way:
            if not len(self._counts):
                return
            if self._may_report():
                self._cut()
            else:
                wait_s = _LEVEL_AGAIN_S
        if self._under_way:
            self._send()
        if self._timer is None and (self._under_way or len(self._counts)) and not self._stopped:
            self._timer = self._clock.call_later(wait_s, self._fire)

    def _may_report(self) -> bool:
        levels = self._image().features.levels
        return (levels.get(LOGBERG_VERSION) or 0) >= ATTEMPTS_FROM

    def _cut(self) -> None:
        self._number += 1
        self._cut_at = self._clock.monotonic()
        self._under_way = cut_report(
            self._counts,
            self._node_id,
            self._life,
            self._number,
            self._total,
            small=self._observes(),
        )
        self._total = self._under_way[-1].total

    def _observes(self) -> bool:
        return all(voter.node_id != self._node_id for voter in self._quorum.voters())

    def _send(self) -> None:
        leader: LeaderAndEpoch = self._quorum.leader_and_epoch()
        report = encode_report(self._under_way)
        if leader.leader is None:
            return
        if leader.leader == self._node_id:
            self._take_own(self._node_id, report)
        elif self._observes():
            self._quorum.tell(report)
        else:
            self._quorum.send_contacts(leader.leader, report)
