"""Judges what a log submits, and cosigns a head that only grew.

Rule: a head is cosigned if enough of the log's keys signed it and the proof leads from the head
that was cosigned last to it. It is durable before the cosignature leaves. `add` is called for one
submission after another, so no two of them are judged by the same old head.

Anybody may submit a head that others signed, with a proof that is junk. So one head is one file of
evidence, however often it comes, and the file goes when the head is cosigned after all.

The answers are those of C2SP's tlog-witness:

    200   the cosignature
    400   it can't be read, or its old size is above the new one
    403   too few of the log's keys signed it, or a signature of a known key is wrong
    404   a log that this witness doesn't know
    409   the old size is not the one that was cosigned last; the answer holds that size
    422   the proof doesn't lead there: the log has another history
"""

from collections.abc import Callable, Iterable
from enum import Enum
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from ledger.merkle.hashing import EMPTY_ROOT
from ledger.merkle.heads import HeadError, TreeHead
from ledger.merkle.notes import NoteError, NoteKey, SignedNote, SigningKey
from ledger.merkle.proofs import ProofError, verify_consistency
from ledger.merkle.submissions import SIZE_TYPE, Submission, SubmissionError
from logberg.witness.state import CosignedHead, WitnessState

TEXT: Final = "text/plain; charset=utf-8"


class Outcome(Enum):
    """What became of a submission."""

    COSIGNED = "cosigned"
    MALFORMED = "malformed"
    UNKNOWN_LOG = "unknown_log"
    NOT_SIGNED = "not_signed"
    CONFLICT = "conflict"
    CONTRADICTS = "contradicts"


_STATUS: Final = {
    Outcome.COSIGNED: 200,
    Outcome.MALFORMED: 400,
    Outcome.UNKNOWN_LOG: 404,
    Outcome.NOT_SIGNED: 403,
    Outcome.CONFLICT: 409,
    Outcome.CONTRADICTS: 422,
}


class WitnessedLog(msgspec.Struct, frozen=True):
    """A log that a witness knows."""

    origin: str
    keys: tuple[NoteKey, ...]
    """Its keys, under the origin as name."""
    needed: int
    """So many of them must have signed a head."""


class Judgement(NamedTuple):
    """The answer to a submission, and what it was about."""

    outcome: Outcome
    body: bytes
    content_type: str = TEXT
    origin: str = ""
    size: int = 0
    """Of the submitted head; 0: it was not read."""
    why: str = ""
    evidence: str = ""
    """The file in which a contradicting submission is kept."""

    @property
    def status(self) -> int:
        """The status of the answer."""
        return _STATUS[self.outcome]


class _RefusedError(Exception):
    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why


class Witness:
    """One witness, without a listener."""

    def __init__(
        self,
        key: SigningKey,
        logs: Iterable[WitnessedLog],
        state: WitnessState,
        now_s: Callable[[], int],
    ) -> None:
        """`now_s`: seconds since 1970 UTC, which a cosignature states."""
        self.public = key.public
        self._key = key
        self.set_logs(logs)
        self._state = state
        self._now_s = now_s

    def set_logs(self, logs: Iterable[WitnessedLog]) -> None:
        """Know these logs from now on. What was cosigned of others is not forgotten."""
        self._logs = {log.origin: log for log in logs}

    def add(self, body: bytes) -> Judgement:
        """Judge a submission. Raises OSError if it can't be made durable; then it is not cosigned.

        Not to be called while another call runs.
        """
        origin, head = "", None
        try:
            submission = Submission.parse(body)
            log = self._log_of(submission)
            origin = log.origin
            note, head = _signed(submission, log)
            known = self._state.newest(origin)
            _check_sizes(submission, head, 0 if known is None else known.head.size)
            _check_growth(submission, head, known)
        except SubmissionError as error:
            return Judgement(Outcome.MALFORMED, f"{error}\n".encode(), why=str(error))
        except _RefusedError as error:
            return self._refused(error, body, origin, head)
        cosignature = self._key.sign(head.text, self._now_s())
        kept = SignedNote(note.text, (*note.signatures, cosignature))
        self._state.keep(CosignedHead(head, kept.encode()))
        self._state.drop_refused(_evidence_of(head))
        body = cosignature.line.encode()
        return Judgement(Outcome.COSIGNED, body, origin=origin, size=head.size)

    def _log_of(self, submission: Submission) -> WitnessedLog:
        log = self._logs.get(submission.origin)
        if log is None:
            raise _RefusedError(Outcome.UNKNOWN_LOG, "this witness does not know that log")
        return log

    def _refused(
        self, error: _RefusedError, body: bytes, origin: str, head: TreeHead | None
    ) -> Judgement:
        size = 0 if head is None else head.size
        if error.outcome is Outcome.CONFLICT:
            return Judgement(error.outcome, f"{error.why}\n".encode(), SIZE_TYPE, origin, size)
        evidence = ""
        if error.outcome is Outcome.CONTRADICTS and head is not None:
            evidence = self._state.keep_refused(_evidence_of(head), body)
        said = f"{error.why}\n".encode()
        return Judgement(error.outcome, said, TEXT, origin, size, error.why, evidence)


def _signed(submission: Submission, log: WitnessedLog) -> tuple[SignedNote, TreeHead]:
    """Return the head that enough of the log's keys signed, and only their signatures with it."""
    try:
        note = SignedNote.parse(submission.note)
        signers = {(key.name, key.id) for key in note.signers(log.keys)}
        head = TreeHead.parse(note.text)
    except NoteError as error:
        raise _RefusedError(Outcome.NOT_SIGNED, f"invalid signature: {error}") from None
    except HeadError as error:
        raise _RefusedError(Outcome.MALFORMED, str(error)) from None
    if len(signers) < log.needed:
        raise _RefusedError(
            Outcome.NOT_SIGNED,
            f"invalid signature: {len(signers)} of the log's {len(log.keys)} keys signed the head, "
            f"and {log.needed} must",
        )
    known = {(one.name, one.key_id): one for one in note.signatures}
    return SignedNote(note.text, tuple(known[key] for key in known if key in signers)), head


def _evidence_of(head: TreeHead) -> str:
    """Return the name of the file of evidence about a head."""
    return f"{head.size:019d}-{sha256(head.text.encode()).hexdigest()[:16]}"


def _check_sizes(submission: Submission, head: TreeHead, known_size: int) -> None:
    if submission.old_size > head.size:
        raise _RefusedError(
            Outcome.MALFORMED, f"the old size is {submission.old_size}, the new one {head.size}"
        )
    if submission.old_size != known_size:
        raise _RefusedError(Outcome.CONFLICT, str(known_size))


def _check_growth(submission: Submission, head: TreeHead, known: CosignedHead | None) -> None:
    if not head.size and head.root != EMPTY_ROOT:
        raise _RefusedError(Outcome.CONTRADICTS, "a log of size 0 has another root")
    if known is None or not known.head.size:
        if submission.proof:
            raise _RefusedError(Outcome.CONTRADICTS, "bad consistency proof: it must be empty")
        return
    old = known.head
    try:
        verify_consistency(old.size, old.root, head.size, head.root, submission.proof)
    except ProofError as error:
        raise _RefusedError(Outcome.CONTRADICTS, f"bad consistency proof: {error}") from None
