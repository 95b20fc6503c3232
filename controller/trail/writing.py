"""The leader's part: writes the reports of controllers into the log, within a budget of bytes.

Rule: a report never goes before a change. It waits in the queue of users' requests, is dropped when
that queue is long, and never takes more bytes a minute than the settings say. What is dropped here
stays with its controller, which sends it again.
"""

from collections.abc import Callable
from typing import Final

from controller.leader.decisions import Decision, Outcome
from controller.leader.proposer import Proposer
from controller.leader.token_bucket import TokenBucket
from controller.managers.address_sealing import AddressSealer
from controller.managers.attempts import is_written, report_attempts
from controller.trail.reports import decode_report
from ledger.batch import Provenance
from metadata.sealed_addresses import TEXT_BYTES
from runtime.clock import Clock

OPERATION: Final = "ReportAttempts"
_ENVELOPE_BYTES: Final = 256
"""About what a batch takes besides its records."""
_WAITING_MAX: Final = 64
"""While more users' requests wait, reports give way to them."""


class AttemptWriting:
    """Idle unless this controller leads."""

    def __init__(
        self,
        clock: Clock,
        proposer: Proposer,
        bytes_per_minute: int,
        provenance: Callable[[int, str], Provenance],
        sealer: AddressSealer | None = None,
    ) -> None:
        """`provenance` makes the provenance of an operation, by the id of the controller.

        `sealer` seals addresses; None: they stay in clear.
        """
        self._sealer = sealer
        self._proposer = proposer
        self._provenance = provenance
        self._bucket = TokenBucket(clock, bytes_per_minute / 60, bytes_per_minute)
        self._under_way: set[int] = set()
        self.held_back = 0
        """For metrics: reports that the budget, or users' requests, made wait."""
        self.bytes = 0
        """For metrics: bytes of the reports that were submitted."""

    def take(self, controller_id: int, data: bytes) -> None:
        """Take a controller's report. It comes again until the log has it."""
        pending = self._proposer.pending
        if pending is None or controller_id in self._under_way:
            return
        records = decode_report(controller_id, data)
        if records is None:
            return
        if is_written(pending.image, records):
            return
        size = len(data) + _ENVELOPE_BYTES
        if self._sealer is not None:
            size += TEXT_BYTES * len(records)
        if self._bucket.tokens < size or self._proposer.waiting > _WAITING_MAX:
            self.held_back += 1
            return
        self._bucket.take(size)
        self._under_way.add(controller_id)
        self.bytes += size

        def done(_outcome: Outcome) -> None:
            self._under_way.discard(controller_id)

        self._proposer.submit(
            Decision(
                lambda image: report_attempts(image, records, self._sealer),
                self._provenance(controller_id, OPERATION),
                done,
            )
        )
