"""The parts of this room, wired: what takes attempts, reports them, and writes reports."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from controller.config import ControllerConfig
from controller.leader.leader_duties import provenance_of_node
from controller.leader.proposer import Proposer
from controller.managers.address_sealing import AddressSealer
from controller.trail.counting import AttemptCounts
from controller.trail.recording import Recording
from controller.trail.reporting import Reporting
from controller.trail.reports import REPORT
from controller.trail.writing import AttemptWriting
from metadata.errors import ErrorCode
from metadata.image import MetadataImage
from metadata.records import AttemptDetail, AttemptOutcome
from quorum.api import Quorum
from runtime.clock import Clock
from runtime.metrics import Registry
from runtime.sockets.attempts import Attempt

_E = ErrorCode
OF_CALLERS: Final = frozenset(
    {
        _E.UNAUTHENTICATED,
        _E.CLUSTER_AUTHORIZATION_FAILED,
        _E.TOPIC_AUTHORIZATION_FAILED,
        _E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        _E.DELEGATION_TOKEN_OWNER_MISMATCH,
        _E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    }
)
"""The errors that refuse a request because of who asks."""
_OUTCOMES: Final = {
    AttemptOutcome.REFUSED: "refused",
    AttemptOutcome.WOULD_BE_REFUSED: "would_be_refused",
    AttemptOutcome.ACCEPTED: "accepted",
}


class AttemptTrail:
    """The trail of one controller."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        life: bytes,
        quorum: Quorum,
        proposer: Proposer,
        image: Callable[[], MetadataImage],
        sealer: AddressSealer | None = None,
        named: Callable[[Attempt], Attempt] = lambda attempt: attempt,
    ) -> None:
        """`life`: 16 bytes, drawn for this process. `image` returns the committed image.

        `sealer` seals addresses; None: they stay in clear. `named` puts pseudonyms into an attempt.
        """
        self._clock = clock
        self._named = named
        self.life = life
        self._recording = Recording(config.attempt_rules)
        self.takes_accepted = self._recording.of_accepted
        """Whether accepted requests are of interest, too."""
        self.counts = AttemptCounts()
        self.writing = AttemptWriting(
            clock,
            proposer,
            config.attempts_bytes_per_minute,
            lambda node_id, operation: provenance_of_node(node_id)(operation),
            sealer,
        )
        self.reporting = Reporting(
            clock,
            config.node_id,
            life,
            config.attempts_interval_s,
            self.counts,
            quorum,
            image,
            self.writing.take,
        )
        self.noted: Counter[tuple[str, str]] = Counter()
        """For metrics: recorded attempts, by outcome and the error's code."""
        self.passed_over = 0
        """For metrics: refused attempts that no rule records."""

    def note(self, attempt: Attempt, outcome: AttemptOutcome = AttemptOutcome.REFUSED) -> None:
        """Count an attempt, unless the settings say that it is not recorded."""
        detail = self._recording.detail(outcome, attempt)
        if detail is AttemptDetail.NONE:
            self.passed_over += outcome is not AttemptOutcome.ACCEPTED
            return
        self.noted[_OUTCOMES[outcome], attempt.code] += 1
        self.counts.note(outcome, detail, self._named(attempt), self._clock.wall_ms())
        self.reporting.wake()

    def take_report(self, node_id: int, data: bytes) -> bool:
        """Take what a controller sent, if it is a report; return whether it is one."""
        if data[:1] != REPORT:
            return False
        self.writing.take(node_id, data)
        return True

    def show(self, registry: Registry) -> None:
        """Declare the metrics."""
        counter = registry.read_counter
        counter(
            "logberg_attempts_total",
            "Attempts that this controller recorded, by outcome and error; the log has them soon",
            lambda: {key: float(count) for key, count in self.noted.items()},
            ("outcome", "code"),
        )
        counter(
            "logberg_attempts_written_total",
            "Attempts of this process that the log has",
            lambda: self.reporting.written,
        )
        counter(
            "logberg_attempts_not_told_apart_total",
            "Attempts that were counted under *, because there were too many kinds",
            lambda: self.counts.not_told_apart,
        )
        counter(
            "logberg_attempts_not_recorded_total",
            "Refused attempts that the settings leave out",
            lambda: self.passed_over,
        )
        counter(
            "logberg_attempt_reports_held_back_total",
            "Reports of attempts that waited for the budget of bytes, or for users' requests",
            lambda: self.writing.held_back,
        )
        counter(
            "logberg_attempt_reports_bytes_total",
            "Bytes of reports of attempts that this controller wrote as the leader",
            lambda: self.writing.bytes,
        )
