"""What a witness has cosigned, and what it refused, in its own folder.

Rule: one file holds the newest head of each log, and is replaced as a whole before an answer
leaves. A folder that has the key but not this file is refused: a witness that forgot what it
cosigned could cosign another history. Such a witness is retired, with its key.

    state.json           of each log the newest head, with the log's signatures and ours
    witness.key          the private key (`settings`)
    refused/             submissions that contradict what we cosigned: the evidence
"""

from collections.abc import Collection
from contextlib import suppress
from typing import Final

import msgspec

from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead
from ledger.merkle.notes import NoteKey, SignedNote
from runtime.disk.interface import Disk

STATE: Final = "state.json"
REFUSED: Final = "refused"
REFUSED_MAX: Final = 64
"""So many refused submissions are kept, the first ones."""
_FORMAT: Final = 1


class WitnessStateError(Exception):
    """The folder can't be used; the message says what to do."""


class _Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    logs: dict[str, str]
    """The newest note by its origin."""


class CosignedHead(msgspec.Struct, frozen=True):
    """The newest head of one log."""

    head: TreeHead
    note: str
    """With the log's signatures that were verified, and ours."""


class WitnessState:
    """The folder. Its methods block, and are called one after another."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._heads: dict[str, CosignedHead] = {}

    @staticmethod
    def begin(disk: Disk) -> None:
        """Make the file of a new witness, before there is a key. Raises OSError."""
        if not disk.exists(STATE):
            disk.replace(STATE, msgspec.json.encode(_Saved(_FORMAT, {})))

    def open(self, own: NoteKey) -> None:
        """Read what was cosigned. Raises WitnessStateError, OSError."""
        if not self._disk.exists(STATE):
            raise WitnessStateError(
                f"{STATE} is gone, and the key is there: this witness no longer knows what it "
                "cosigned. Retire its key, and begin a new witness in an empty folder"
            )
        try:
            saved = msgspec.json.decode(self._disk.read(STATE), type=_Saved)
            if saved.format != _FORMAT:
                raise WitnessStateError(f"{STATE} is of format {saved.format}: use a newer release")
            for origin, text in saved.logs.items():
                note = SignedNote.parse(text.encode())
                head = TreeHead.parse(note.text)
                if head.origin != origin or not note.signers([own]):
                    raise WitnessStateError(
                        f"{STATE}: the head of {origin} has no cosignature of {own.text}"
                    )
                self._heads[origin] = CosignedHead(head, text)
        except (msgspec.DecodeError, UnicodeError, LedgerError) as error:
            raise WitnessStateError(
                f"{STATE} is damaged ({error}): put back the newest copy that is sound, and only "
                "if this witness has cosigned nothing since; else retire its key"
            ) from error

    def newest(self, origin: str) -> CosignedHead | None:
        """Return the newest head of a log that was cosigned; None: none was."""
        return self._heads.get(origin)

    def origins(self) -> Collection[str]:
        """Return the origins of which something was cosigned."""
        return tuple(self._heads)

    def keep(self, cosigned: CosignedHead) -> None:
        """Make a head durable as the newest of its log. Raises OSError: then nothing changed."""
        heads = {**self._heads, cosigned.head.origin: cosigned}
        logs = {origin: one.note for origin, one in sorted(heads.items())}
        self._disk.replace(STATE, msgspec.json.encode(_Saved(_FORMAT, logs)))
        self._heads = heads

    def keep_refused(self, name: str, body: bytes) -> str:
        """Keep a submission as evidence; return its file, or nothing if it is not kept."""
        with suppress(OSError):
            self._disk.make_folder(REFUSED)
            kept = self._disk.list(REFUSED)
            path = f"{REFUSED}/{name}"
            if name in kept or len(kept) >= REFUSED_MAX:
                return path if name in kept else ""
            self._disk.replace(path, body)
            return path
        return ""

    def drop_refused(self, name: str) -> None:
        """Keep a submission no more: it contradicts nothing. A disk that fails keeps it."""
        with suppress(OSError):
            if name in self._disk.list(REFUSED):
                self._disk.unlink(f"{REFUSED}/{name}")
