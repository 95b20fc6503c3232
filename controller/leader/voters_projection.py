"""Keeps the log's record of the voters equal to the quorum's voters (ADR 0081).

Rule: who votes is decided in the quorum's log alone. The entry of a change has the VotersRecord
that says the same. All the same the two can differ: the fence skips a batch of an earlier leader
whose entry is committed. So the active controller compares them when it begins and whenever
something was committed, and writes the record again.

While a change waits or is not committed, nothing is compared: the pending image has the new voters
before the quorum has them.
"""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from controller.leader.decisions import Decision, LeadershipLost, Outcome, Written
from controller.leader.proposer import Proposer
from controller.managers.voters import differs, set_voters
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.image import MetadataImage
from quorum.api import VoterSet
from runtime.clock import Clock

OPERATION = "SetVoters"
_AGAIN_S = 1.0
"""Pause after the decision was refused."""


class VotersProjection:
    """Idle unless this controller is active."""

    def __init__(
        self,
        clock: Clock,
        voter_set: Callable[[], VoterSet],
        proposer: Proposer,
        provenance: Callable[[str], Provenance],
        log: FilteringBoundLogger,
    ) -> None:
        self._clock = clock
        self._voter_set = voter_set
        self._proposer = proposer
        self._provenance = provenance
        self._log = log
        self._leads = False
        self._under_way = False
        self._not_before = 0.0

    def begin(self) -> None:
        """This controller is active now."""
        self._leads = True
        self._under_way = False
        self.look()

    def end(self) -> None:
        """This controller leads no more."""
        self._leads = False

    def look(self) -> None:
        """Something was committed: write the voters if the image has others."""
        pending = self._proposer.pending
        if not self._leads or self._under_way or pending is None:
            return
        if self._clock.monotonic() < self._not_before or not self._differs(pending.image):
            return
        self._under_way = True
        self._proposer.submit(
            Decision(self._decide, self._provenance(OPERATION), self._done, first=True)
        )

    def _differs(self, image: MetadataImage) -> bool:
        quorums = self._voter_set()
        return quorums.settled and differs(image, quorums)

    def _decide(self, image: MetadataImage) -> ControllerResult:
        if not self._differs(image):
            return ControllerResult(())
        return set_voters(image, self._voter_set().voters)

    def _done(self, outcome: Outcome) -> None:
        self._under_way = False
        if isinstance(outcome, Written):
            if outcome.wrote:
                self._log.warning("voters_written_again", offset=outcome.offset)
        elif not isinstance(outcome, LeadershipLost):
            self._not_before = self._clock.monotonic() + _AGAIN_S
