"""What the console can say about the log's integrity, and up to where.

Rule: a log is called verified up to an offset only if every frame before it was read and its
checksum, its hash and its place in the chain were right. What is appended later is checked as it is
read. A log of running controllers is verified as far as this process has read it.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from audit.places.replicas import NoLogError, Replica
from audit.questions.verification import VerificationResult, verify_replica
from ledger.chain import LogMark
from ledger.errors import LedgerError


class ProofStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What was verified."""

    state: str = "waiting"
    """`waiting`, `verifying`, `sound` or `damaged`."""
    verified_to: int = 0
    """The offset up to which everything was verified."""
    head: str = ""
    """The chain hash there, to write down."""
    verified_from: int = 0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    checkpoints: int = 0
    """How many checkpoint files were read and have the right bytes."""


def verified(replica: Replica, on_progress: Callable[[int, int], None]) -> ProofStatus:
    """Verify the log's files and the bytes of its checkpoints."""
    try:
        found = verify_replica(replica, keep_going=True, with_replay=False, on_progress=on_progress)
    except (NoLogError, LedgerError, OSError) as error:
        return ProofStatus("damaged", problems=(str(error),))
    return _of(found)


def grown(status: ProofStatus, mark: LogMark) -> ProofStatus:
    """Return the status after more was read, which continues what was verified."""
    if status.state != "sound" or mark.log_end <= status.verified_to:
        return status
    return msgspec.structs.replace(status, verified_to=mark.log_end, head=mark.head.hex())


def _of(found: VerificationResult) -> ProofStatus:
    report = found.report
    place: dict[str, Any] = {}
    if report is not None:
        bad = report.first_bad
        place = {
            "verified_to": report.log_end if bad is None else bad.offset,
            "verified_from": report.log_start,
            "head": report.head.hex() if bad is None else "",
        }
    return ProofStatus(
        "sound" if found.ok else "damaged",
        problems=tuple(map(str, found.problems[:20])),
        notes=found.notes[:20],
        checkpoints=found.checkpoints,
        **place,
    )
