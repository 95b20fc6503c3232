"""A witness that only keeps: a folder on another disk, or object storage with a lock.

Rule: each head is a file of its own that is never written twice, and beside the heads lie the
hashes of all batches. So whoever holds the place can tell which batch of a log is the first that
differs, without any of our nodes. What lies there already is compared with our log; a difference
ends the writing, because the evidence must stay as it is. Only a head that a majority of our voters
signed contradicts our log. Another head, or other hashes, may be from anybody who can write there:
they are a problem of the place.

    0000000000000000300.head                       a signed head of 300 batches
    0000000000000000256-0000000000000000300.batches  the hashes of batches 256 to 299, 32 bytes each

Each head is written after the hashes of all its batches. All controllers write to one place. They
list it once, at their start: later ones only write names that follow from the log.
"""

import re
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from controller.signing.witnessing import OnAnswer, ShownHead, WitnessAnswer, another_history
from ledger.batch_tree import BatchTree
from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead
from ledger.merkle.notes import SignedNote
from runtime.clock import Clock

BATCHES_MAX: Final = 4096
"""So many hashes are in one file, at the most."""
_DIGITS: Final = 19
_HEAD = re.compile(rf"([0-9]{{{_DIGITS}}})\.head")
_BATCHES = re.compile(rf"([0-9]{{{_DIGITS}}})-([0-9]{{{_DIGITS}}})\.batches")
T = TypeVar("T")


def head_name(size: int) -> str:
    """Return the name of a head's file."""
    return f"{size:0{_DIGITS}d}.head"


def batches_name(first: int, end: int) -> str:
    """Return the name of the file with the hashes of batches [first, end)."""
    return f"{first:0{_DIGITS}d}-{end:0{_DIGITS}d}.batches"


def head_sizes(names: list[str]) -> list[int]:
    """Return the sizes of the heads among the names, sorted."""
    return sorted(int(found[1]) for name in names if (found := _HEAD.fullmatch(name)))


def batch_ranges(names: list[str]) -> list[tuple[int, int]]:
    """Return first and end of the files with hashes among the names, sorted."""
    found = (_BATCHES.fullmatch(name) for name in names)
    return sorted((int(one[1]), int(one[2])) for one in found if one)


class DropPlace(Protocol):
    """A place, by calls that block. All raise OSError."""

    def names(self) -> list[str]:
        """Return the names of the files there."""

    def read(self, name: str) -> bytes:
        """Return the content of a file."""

    def put_new(self, name: str, content: bytes) -> bool:
        """Write a file, durably; False if there is one of this name, which stays as it is."""


class Drop(Protocol):
    """A place, for a loop that must not wait."""

    @property
    def location(self) -> str:
        """Its path or URL, without secrets."""

    def run(
        self,
        work: Callable[[DropPlace], T],
        on_done: Callable[[T | None, OSError | None], None],
    ) -> None:
        """Do blocking work elsewhere, then call `on_done` on the loop."""


class HeadDrop:
    """`controller.signing.witnessing.HeadWitness` over a place."""

    def __init__(self, drop: Drop, every_s: float, clock: Clock) -> None:
        """`every_s`: the least time between two heads."""
        self._drop = drop
        self._every_s = every_s
        self._clock = clock
        self._due_at = clock.monotonic()
        self._looked = False
        self._compared_end = 0
        """The hashes up to here were written by this process, or compared with our tree."""

    @property
    def name(self) -> str:
        return self._drop.location

    def submit(self, shown: ShownHead, on_answer: OnAnswer) -> None:
        def looked(names: list[str] | None, error: OSError | None) -> None:
            if names is None:
                on_answer(_failed(error))
            else:
                self._judge_heads(shown, names, on_answer)

        def begin() -> None:
            self._due_at = self._clock.monotonic() + self._every_s
            if self._looked:
                self._write_batches(shown, [], on_answer)
            else:
                self._drop.run(lambda place: place.names(), looked)

        self._clock.call_later(max(0.0, self._due_at - self._clock.monotonic()), begin)

    def _judge_heads(self, shown: ShownHead, names: list[str], on_answer: OnAnswer) -> None:
        """Compare the newest head there with our log, and go on if it is a beginning of it."""
        sizes = head_sizes(names)
        ranges = batch_ranges(names)
        if not sizes:
            self._looked = True
            self._write_batches(shown, ranges, on_answer)
            return

        def read(content: bytes | None, error: OSError | None) -> None:
            if content is None:
                on_answer(_failed(error))
                return
            problem = _compared(shown, sizes[-1], content)
            self._looked = problem is None
            if problem is not None:
                on_answer(problem)
            elif sizes[-1] >= shown.signed.head.size:
                on_answer(WitnessAnswer(sizes[-1]))
            else:
                self._write_batches(shown, ranges, on_answer)

        name = head_name(sizes[-1])
        self._drop.run(lambda place: place.read(name), read)

    def _write_batches(
        self, shown: ShownHead, ranges: list[tuple[int, int]], on_answer: OnAnswer
    ) -> None:
        """Write the hashes that are not there yet, or compare those that are, file by file."""
        size = shown.signed.head.size
        at = self._compared_end
        ends = [end for first, end in ranges if first == at]
        if at >= size:
            self._write_head(shown, on_answer)
            return
        end = min(ends) if ends else min(size, at + BATCHES_MAX)
        tree = shown.tree()
        if tree is None or end > tree.size or end - at > BATCHES_MAX:
            on_answer(WitnessAnswer(problem=f"{batches_name(at, end)} there is beyond our log"))
            return
        try:
            ours = tree.batch_hashes(at, end - at)
        except (LedgerError, OSError) as error:
            on_answer(WitnessAnswer(problem=f"the hashes can't be read here: {error}"))
            return

        def put(content: bytes | None, error: OSError | None) -> None:
            if content is None:
                on_answer(_failed(error))
            elif content != ours:
                # Or the next try would write under other names, beside these.
                self._looked = False
                on_answer(_other_batches(at, content, ours))
            else:
                self._compared_end = end
                self._write_batches(shown, ranges, on_answer)

        name = batches_name(at, end)
        self._drop.run(lambda place: _put_or_read(place, name, ours), put)

    def _write_head(self, shown: ShownHead, on_answer: OnAnswer) -> None:
        head, note = shown.signed.head, shown.signed.note.encode()

        def put(content: bytes | None, error: OSError | None) -> None:
            if content is None:
                on_answer(_failed(error))
                return
            problem = _compared(shown, head.size, content)
            on_answer(WitnessAnswer(head.size) if problem is None else problem)

        name = head_name(head.size)
        self._drop.run(lambda place: _put_or_read(place, name, note), put)


def _put_or_read(place: DropPlace, name: str, content: bytes) -> bytes:
    """Write a file; return what lies under its name then. Raises OSError."""
    return content if place.put_new(name, content) else place.read(name)


def _compared(shown: ShownHead, size: int, content: bytes) -> WitnessAnswer | None:
    """Compare our log with a head that lies there; None: our log has it.

    `size`: of the head, as the name of its file says.
    """
    try:
        note = SignedNote.parse(content)
        theirs = TreeHead.parse(note.text)
        tree: BatchTree | None = shown.tree()
        if theirs.origin != shown.signed.head.origin:
            return WitnessAnswer(problem=f"heads of {theirs.origin} lie there: use another place")
        if theirs.size != size:
            return WitnessAnswer(
                problem=f"{head_name(size)} there holds a head of {theirs.size} batches"
            )
        if tree is None or theirs.size > tree.size:
            return WitnessAnswer(
                problem=f"a head of {theirs.size} batches lies there; our log is not so long"
            )
        return another_history(shown, note, theirs)
    except (LedgerError, OSError) as error:
        return WitnessAnswer(problem=f"the newest head there can't be used: {error}")


def _other_batches(first: int, theirs: bytes, ours: bytes) -> WitnessAnswer:
    at = next((at for at in range(len(ours)) if theirs[at : at + 1] != ours[at : at + 1]), 0)
    return WitnessAnswer(
        problem=f"the hash of batch {first + at // 32} that lies there is not the one of our log, "
        "and no head there proves it: compare with `logberg audit check-heads`, and use another "
        "place"
    )


def _failed(error: OSError | None) -> WitnessAnswer:
    why = "no answer" if error is None else error.strerror or str(error)
    return WitnessAnswer(problem=f"the place can't be used: {why}")
