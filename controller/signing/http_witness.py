"""A witness that is asked over HTTP, as C2SP's tlog-witness describes it.

Rule: a cosignature counts if the configured key verifies it over our own head; all else that the
witness says is its claim. A proof is verified before it leaves, so a witness that refuses one has
another history, or lies. What it cosigned of ours is then fetched. A head that a majority of our
voters signed, and that our log does not have, is evidence whoever shows it. Under fewer signatures
it is a claim of the witness.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from controller.signing.witnessing import OnAnswer, ShownHead, WitnessAnswer, another_history
from ledger.batch_tree import BatchTree
from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead
from ledger.merkle.notes import NoteKey, NoteSignature, SignedNote
from ledger.merkle.proofs import verify_consistency
from ledger.merkle.submissions import (
    PATH,
    Submission,
    path_of,
    read_cosignatures,
    read_size,
)
from runtime.clock import Clock
from runtime.http.requests import Reply, Request, Requester, Unreachable

_DEADLINE_S: Final = 10.0
_TRIES: Final = 4
"""Conflicts in one submission: the other controllers ask the same witness at the same time."""
_SAID_MAX: Final = 300


class HttpWitness:
    """One witness, by its URL and its key."""

    def __init__(self, url: str, key: NoteKey, requester: Requester, clock: Clock) -> None:
        self._url = url
        self._key = key
        self._requester = requester
        self._call_soon = clock.call_soon
        self._size = 0
        """The witness has so many batches of our log, as far as is known."""

    @property
    def name(self) -> str:
        return self._key.name

    def submit(self, shown: ShownHead, on_answer: OnAnswer) -> None:
        self._submit(shown, on_answer, _TRIES)

    def _submit(self, shown: ShownHead, on_answer: OnAnswer, tries: int) -> None:
        head = shown.signed.head
        old = min(self._size, head.size)
        try:
            proof = _proof(shown.tree(), old, head)
        except (LedgerError, OSError) as error:
            problem = f"the proof can't be made here: {error}"
            self._call_soon(lambda: on_answer(WitnessAnswer(problem=problem)))
            return
        body = Submission(old, proof, shown.signed.note.encode()).encode()
        self._ask("POST", PATH, body, lambda said: self._judge(shown, on_answer, tries, said))

    def _ask(
        self, method: str, path: str, body: bytes, on_reply: Callable[[Reply | Unreachable], None]
    ) -> None:
        headers = {"content-type": "text/plain; charset=utf-8"} if body else {}
        request = Request(method, path, body, {}, headers)
        self._requester.request(self._url, request, on_reply, _DEADLINE_S)

    def _judge(
        self, shown: ShownHead, on_answer: OnAnswer, tries: int, said: Reply | Unreachable
    ) -> None:
        head = shown.signed.head
        if isinstance(said, Unreachable):
            on_answer(WitnessAnswer(problem=f"it does not answer: {said.reason}"))
            return
        try:
            match said.status:
                case HTTPStatus.OK:
                    signature = self._cosignature(head, said.body)
                    self._size = head.size
                    on_answer(WitnessAnswer(head.size, signature))
                case HTTPStatus.CONFLICT:
                    self._conflict(shown, on_answer, tries, read_size(said.body))
                case HTTPStatus.UNPROCESSABLE_ENTITY:
                    self._compare(shown, on_answer, f"it refuses the head: {_text(said)}")
                case _:
                    problem = f"it answers with status {said.status}: {_text(said)}"
                    on_answer(WitnessAnswer(problem=problem))
        except LedgerError as error:
            on_answer(WitnessAnswer(problem=str(error)))

    def _cosignature(self, head: TreeHead, body: bytes) -> NoteSignature:
        """Return the witness's own signature. Raises LedgerError."""
        for one in read_cosignatures(body):
            if (one.name, one.key_id) == (self._key.name, self._key.id):
                if self._key.verifies(head.text, one.signature):
                    return one
                raise LedgerError("its cosignature is wrong")
        raise LedgerError(f"it cosigns with another key than {self._key.text}")

    def _conflict(self, shown: ShownHead, on_answer: OnAnswer, tries: int, size: int) -> None:
        known, self._size = self._size, size
        if size > shown.signed.head.size:
            # Another controller was quicker with a newer head, or the witness has more than our
            # log ever had: its own head says which.
            self._compare(shown, on_answer, f"it has a head of {size} batches, we showed less")
        elif tries <= 1 or size == known:
            on_answer(WitnessAnswer(problem=f"it says that it has {size} batches, and refuses"))
        else:
            self._submit(shown, on_answer, tries - 1)

    def _compare(self, shown: ShownHead, on_answer: OnAnswer, problem: str) -> None:
        """Ask for the head that the witness has, and compare our log with it."""

        def compared(said: Reply | Unreachable) -> None:
            on_answer(self._compared(shown, problem, said))

        self._ask("GET", path_of(shown.signed.head.origin), b"", compared)

    def _compared(self, shown: ShownHead, problem: str, said: Reply | Unreachable) -> WitnessAnswer:
        if isinstance(said, Unreachable) or said.status != HTTPStatus.OK:
            return WitnessAnswer(problem=f"{problem}; it does not show the head that it has")
        head = shown.signed.head
        try:
            note = SignedNote.parse(said.body)
            theirs = TreeHead.parse(note.text)
            if not note.signers([self._key]) or theirs.origin != head.origin:
                return WitnessAnswer(problem=f"{problem}; the head that it shows is not its own")
            tree = shown.tree()
            if tree is None or theirs.size > tree.size:
                return WitnessAnswer(problem=f"{problem}; it shows one of {theirs.size} batches")
            other = another_history(shown, note, theirs)
        except (LedgerError, OSError) as error:
            return WitnessAnswer(problem=f"{problem}; the head that it shows: {error}")
        if other is not None:
            return other
        self._size = theirs.size
        if theirs.size > head.size:
            return WitnessAnswer(theirs.size)
        return WitnessAnswer(problem=f"{problem}; but its own head is one of our log")


def _proof(tree: BatchTree | None, old: int, head: TreeHead) -> tuple[bytes, ...]:
    """Return a proof that was verified. Raises LedgerError, OSError."""
    if not 0 < old < head.size:
        return ()
    if tree is None:
        raise LedgerError("there is no tree now")
    proof = tree.consistency(old, head.size)
    verify_consistency(old, tree.root(old), head.size, head.root, proof)
    return proof


def _text(said: Reply) -> str:
    return said.body[:_SAID_MAX].decode(errors="replace").strip()
