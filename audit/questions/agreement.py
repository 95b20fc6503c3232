"""Verifies several controllers' logs and compares them with each other.

Rule: each log is verified by itself first, from its files alone. `compare` then compares the parts
that are sound. Logs that end at different offsets may still agree.
"""

from collections.abc import Callable, Sequence

import msgspec

from audit.places.replicas import Replica
from audit.questions.compare import Comparison, compare
from audit.questions.verification import verify_log
from ledger.verify import VerifyReport

OnStep = Callable[[str, int, int], None]
"""Called with the name of the replica, the bytes that were read, and the bytes in all."""


class VerifiedLog(msgspec.Struct, frozen=True):
    """One replica and the verification of its log."""

    replica: Replica
    report: VerifyReport


class Agreement(msgspec.Struct, frozen=True):
    """The verified logs, and how they compare."""

    logs: tuple[VerifiedLog, ...]
    comparison: Comparison

    @property
    def ok(self) -> bool:
        """Every log is sound, and all of them agree."""
        return not self.problem and all(one.report.ok for one in self.logs)

    @property
    def problem(self) -> str:
        """Why the logs can't be trusted together, in a sentence; empty when they can.

        Damage inside one log is in its report, not here.
        """
        for one in self.logs:
            if one.replica.problem:
                return f"{one.replica.location}: {one.replica.problem}"
        return self.comparison.problem


def agree(replicas: Sequence[Replica], on_step: OnStep | None = None) -> Agreement:
    """Verify each replica's log, then compare them. Raises NoLogError, LedgerError, OSError."""
    logs = tuple(VerifiedLog(each, _verified(each, on_step)) for each in replicas)
    reports = {one.replica.name: one.report for one in logs}
    return Agreement(logs, compare(replicas, reports))


def _verified(replica: Replica, on_step: OnStep | None) -> VerifyReport:
    if on_step is None:
        return verify_log(replica)
    return verify_log(
        replica, on_progress=lambda done, total: on_step(f"verifying {replica.name}", done, total)
    )
