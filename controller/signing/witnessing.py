"""Each controller shows its signed heads to witnesses, outside the cluster, and keeps their word.

Rule: nothing waits for a witness. One that lies, lags or is gone costs a figure, an event and a
later try, never a write. A witness contradicts our log only with a head that a majority of our
voters signed, because anybody can show a head without their signatures. Every controller asks every
witness by itself, so a leader that some attacker holds can't keep a witness's contradiction from
the others.

A head is *witnessed* when so many witnesses as the setting says have it. `unwitnessed_ms` is the
age of the oldest batch that no witnessed head covers: so long a rewritten history would stay
unnoticed outside. If it exceeds the setting, the controller says so.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec
from structlog.typing import FilteringBoundLogger

from controller.signing.heads import SignedHead
from ledger.batch_tree import BatchTree
from ledger.merkle.heads import TreeHead
from ledger.merkle.notes import NoteSignature, SignedNote
from runtime.clock import Clock, Timer

_AGAIN_FIRST_S: Final = 1.0
_AGAIN_MOST_S: Final = 60.0
_LOOK_S: Final = 5.0
"""How often the age of what is not witnessed is looked at."""
_PENDING_MAX: Final = 1_000
"""So many heads are waited for; then the oldest stands for those after it."""


class WitnessAnswer(msgspec.Struct, frozen=True):
    """What a witness said to a head, or why it said nothing that counts."""

    size: int = 0
    """The witness has our log up to here: so many batches."""
    cosignature: NoteSignature | None = None
    """Of the submitted head; a place to which heads are written gives none."""
    problem: str = ""
    """Why the witness doesn't have the head; empty: it has."""
    contradiction: str = ""
    """The witness has another history of our log; the sentence names both heads."""
    evidence: str = ""
    """The head of that other history, as a signed note."""


OnAnswer = Callable[[WitnessAnswer], None]


class ShownHead(NamedTuple):
    """A head that is shown to a witness."""

    signed: SignedHead
    tree: Callable[[], BatchTree | None]
    """This controller's tree, as it is now; None while it has none."""
    is_ours: Callable[[SignedNote], bool]
    """Whether a majority of our voters signed a head. Raises NoteError."""


class HeadWitness(Protocol):
    """Somebody outside who keeps our heads."""

    @property
    def name(self) -> str:
        """Its name in events and metrics, without secrets."""

    def submit(self, shown: ShownHead, on_answer: OnAnswer) -> None:
        """Show a head; call `on_answer` once, later, on the loop. Not to be called again before."""


class AskedWitness(msgspec.Struct):
    """How one witness is."""

    witness: HeadWitness
    size: int = 0
    """It has our log up to here."""
    busy: bool = False
    problem: str = ""
    contradiction: str = ""
    failures: int = 0
    """Submissions without success, one after another."""
    timer: Timer | None = None


class _Pending(NamedTuple):
    size: int
    since_ms: int
    """The first of its batches that no head before had was committed then."""


class Witnessing:
    """One controller's witnesses, and what they have."""

    def __init__(
        self,
        clock: Clock,
        witnesses: Sequence[HeadWitness],
        needed: int,
        window_s: float,
        *,
        newest: Callable[[], SignedHead | None],
        tree: Callable[[], BatchTree | None],
        is_ours: Callable[[SignedNote], bool],
        unsigned_ms: Callable[[int], int],
        on_cosigned: Callable[[SignedHead, NoteSignature], None],
        keep_evidence: Callable[[str, str], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`is_ours` says whether a majority of our voters signed a head.

        `unsigned_ms` returns how long batches wait for a signed head.

        `keep_evidence` gets the witness's head, as a note, and a sentence.
        """
        self._clock = clock
        self.states = [AskedWitness(one) for one in witnesses]
        self._needed = needed
        self.window_s = window_s
        self._newest = newest
        self._tree = tree
        self._is_ours = is_ours
        self._unsigned_ms = unsigned_ms
        self._on_cosigned = on_cosigned
        self._keep_evidence = keep_evidence
        self._log = log
        self._pending: list[_Pending] = []
        self._timer: Timer | None = None
        self._overdue = False
        self._stopped = False

    @property
    def contradicting(self) -> list[str]:
        """The sentences of the witnesses that have another history of our log."""
        return [one.contradiction for one in self.states if one.contradiction]

    @property
    def witnessed_size(self) -> int:
        """So many batches are under a head that enough witnesses have."""
        sizes = sorted((one.size for one in self.states), reverse=True)
        return sizes[self._needed - 1] if len(sizes) >= self._needed else 0

    def unwitnessed_ms(self, now_ms: int) -> int:
        """Return the age of the oldest batch that no witnessed head covers; 0: there is none."""
        unsigned = self._unsigned_ms(now_ms)
        return max(unsigned, now_ms - self._pending[0].since_ms) if self._pending else unsigned

    def on_head(self, head: SignedHead, since_ms: int) -> None:
        """A head was signed by a majority: show it.

        `since_ms`: when the first batch was committed that no head before had.
        """
        if not self.states:
            return
        if len(self._pending) < _PENDING_MAX and head.head.size > self.witnessed_size:
            self._pending.append(_Pending(head.head.size, since_ms))
        if self._timer is None:
            self._look()
        for state in self.states:
            self._submit(state)

    def stop(self) -> None:
        """Ask nobody any more."""
        self._stopped = True
        for timer in (self._timer, *(state.timer for state in self.states)):
            if timer is not None:
                timer.cancel()

    def _submit(self, state: AskedWitness) -> None:
        head, tree = self._newest(), self._tree()
        if self._stopped or state.busy or state.timer is not None or head is None or tree is None:
            return
        if head.head.size > tree.size:
            return
        state.busy = True
        shown = ShownHead(head, self._tree, self._is_ours)
        state.witness.submit(shown, lambda answer: self._answered(state, head, answer))

    def _answered(self, state: AskedWitness, head: SignedHead, answer: WitnessAnswer) -> None:
        state.busy = False
        if self._stopped:
            return
        state.size = max(state.size, answer.size)
        if answer.contradiction and not state.contradiction:
            state.contradiction = answer.contradiction
            self._keep_evidence(
                answer.evidence, f"witness {state.witness.name}: {answer.contradiction}"
            )
            self._log.critical(
                "witness_contradicts", witness=state.witness.name, why=answer.contradiction
            )
        if answer.problem or answer.contradiction:
            self._failed(state, answer.problem or answer.contradiction)
            return
        if state.problem:
            self._log.info("witness_answers_again", witness=state.witness.name)
        state.problem, state.contradiction, state.failures = "", "", 0
        if answer.cosignature is not None:
            self._on_cosigned(head, answer.cosignature)
        covered = self.witnessed_size
        self._pending = [one for one in self._pending if one.size > covered]
        newest = self._newest()
        if newest is not None and newest.head.size > head.head.size:
            self._submit(state)

    def _failed(self, state: AskedWitness, why: str) -> None:
        if state.problem != why:
            self._log.warning("witness_failed", witness=state.witness.name, why=why)
        state.problem = why
        pause = min(_AGAIN_MOST_S, _AGAIN_FIRST_S * 2 ** min(state.failures, 8))
        state.failures += 1

        def again() -> None:
            state.timer = None
            self._submit(state)

        state.timer = self._clock.call_later(pause, again)

    def _look(self) -> None:
        self._timer = self._clock.call_later(_LOOK_S, self._look)
        age_ms = self.unwitnessed_ms(self._clock.wall_ms())
        overdue = age_ms > self.window_s * 1000
        if overdue and not self._overdue:
            failing = {one.witness.name: one.problem for one in self.states if one.problem}
            self._log.error("head_unwitnessed", seconds=age_ms // 1000, failing=failing)
        elif self._overdue and not overdue:
            self._log.info("head_witnessed_again", batches=self.witnessed_size)
        self._overdue = overdue


def another_history(shown: ShownHead, note: SignedNote, theirs: TreeHead) -> WitnessAnswer | None:
    """Compare our log with a head of it that a witness has; None: our log has that head.

    Our tree must reach as far. Raises LedgerError, OSError.
    """
    tree = shown.tree()
    assert tree is not None
    root = tree.root(theirs.size)
    if root == theirs.root:
        return None
    said = f"of {theirs.size} batches with the root {theirs.root.hex()}"
    if not shown.is_ours(note):
        return WitnessAnswer(
            problem=f"it shows a head {said}, which is not of our log, and too few of our keys "
            "signed it"
        )
    return WitnessAnswer(
        contradiction=f"the witness has a head {said}, and our log gives {root.hex()}: one of the "
        "two histories is forged",
        evidence=note.encode(),
    )
