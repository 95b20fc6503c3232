"""What a log sends to a witness, as C2SP's tlog-witness describes it: add-checkpoint.

Rule: a submission names the size that the witness cosigned last, the proof that the new head only
grew from there, and the new head. The witness takes nothing from it but as a claim.

    old 20852014
    <the proof: hashes in base64, a line each>

    <the checkpoint: a signed note>
"""

import base64
import re
from hashlib import sha256
from typing import Final

import msgspec

from ledger.batch import HASH_BYTES
from ledger.errors import LedgerError
from ledger.merkle.frontier import SIZE_MAX
from ledger.merkle.notes import NoteError, NoteSignature

PATH: Final = "/add-checkpoint"
SIZE_TYPE: Final = "text/x.tlog.size"
"""The type of the answer 409, which holds the size that the witness cosigned last."""
PROOF_MAX: Final = 63
"""The most hashes of a proof."""
_OLD = re.compile(rb"old (0|[1-9][0-9]{0,18})")
_LINES_MAX: Final = 16
"""The most cosignatures that an answer may have."""


class SubmissionError(LedgerError):
    """A submission, or the answer to one, can't be read."""


class Submission(msgspec.Struct, frozen=True):
    """A new head for a witness. The note is not read yet."""

    old_size: int
    proof: tuple[bytes, ...]
    note: bytes

    def encode(self) -> bytes:
        """Return the body of the request."""
        lines = [f"old {self.old_size}", *(base64.b64encode(one).decode() for one in self.proof)]
        return "".join(f"{line}\n" for line in lines).encode() + b"\n" + self.note

    @classmethod
    def parse(cls, body: bytes) -> "Submission":
        """Read the body of a request. Raises SubmissionError."""
        head, blank, note = body.partition(b"\n\n")
        old, *lines = head.split(b"\n")
        found = _OLD.fullmatch(old)
        if not blank or found is None or int(found[1]) > SIZE_MAX:
            raise SubmissionError("the first line must be `old` and a size, and an empty line ends")
        if len(lines) > PROOF_MAX:
            raise SubmissionError(f"a proof has at most {PROOF_MAX} hashes, not {len(lines)}")
        return cls(int(found[1]), tuple(map(_hash, lines)), note)

    @property
    def origin(self) -> str:
        """The first line of the note: which log it says that it is of. Raises SubmissionError."""
        try:
            return self.note.partition(b"\n")[0].decode()
        except UnicodeDecodeError:
            raise SubmissionError("the checkpoint is no UTF-8") from None


def read_cosignatures(body: bytes) -> tuple[NoteSignature, ...]:
    """Read the body of an answer 200. Raises SubmissionError. Nothing is verified yet."""
    try:
        lines = body.decode().split("\n")
        if len(lines) < 2 or lines.pop() or len(lines) > _LINES_MAX:
            raise SubmissionError("the answer must have a few lines of signatures")
        return tuple(map(NoteSignature.parse, lines))
    except (UnicodeDecodeError, NoteError) as error:
        raise SubmissionError(f"the answer has no cosignatures: {error}") from None


def read_size(body: bytes) -> int:
    """Read the body of an answer 409: the size that the witness has. Raises SubmissionError."""
    text = body.removesuffix(b"\n")
    if not re.fullmatch(rb"0|[1-9][0-9]{0,18}", text) or int(text) > SIZE_MAX:
        raise SubmissionError(f"the answer has no size: {body[:80]!r}")
    return int(text)


def path_of(origin: str) -> str:
    """Return the path under which a witness serves what it cosigned last of a log."""
    return f"/{sha256(origin.encode()).hexdigest()}/checkpoint"


def _hash(line: bytes) -> bytes:
    try:
        found = base64.b64decode(line, validate=True)
    except ValueError:
        found = b""
    if len(found) != HASH_BYTES or base64.b64encode(found) != line:
        raise SubmissionError(f"not a hash in base64: {line[:80]!r}")
    return found
