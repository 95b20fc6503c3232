"""Broken controllers, one protection less each: the judges of answers must see every one.

    python -m tests.simulation.answers_mutants [NAME ...] --count 40

Rule: only what `Judgement` says counts. The other invariants, which would end the run first, are
deaf meanwhile: so a judge that sees nothing can't hide behind them.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import msgspec

from controller import changes
from controller.idempotency import Idempotency, RequestKey
from controller.node_view import NodeView
from controller.pending import Pending
from controller.reads import Reads
from metadata.image.cluster import ClusterDelta
from metadata.image.outcomes import OutcomesDelta
from metadata.image.quorum import QuorumDelta
from runtime.simulated.world import World
from tests.simulation.answers import Judgement
from tests.simulation.patches import Patch, patched
from tests.simulation.seeds import run_seed


class Mutant(NamedTuple):
    """What is switched off, and a seed that sees it."""

    patches: tuple[Patch, ...]
    kind: str
    seed: int


def _at_once(self: Any, *arguments: Any) -> None:
    """Whatever is waited for: it is there."""
    arguments[-1](True)


_read, _placed, _request_key = NodeView.read, changes._placed, changes.request_key
_note = OutcomesDelta.note


def _read_what_is_proposed(self: NodeView) -> Any:
    view, pending = _read(self), self._proposer.pending
    return view if pending is None else view._replace(image=pending.image)


def _placed_before(reply: Any, offset: int, *rest: Any) -> Any:
    return _placed(reply, offset - 1, *rest)


def _another_id(*arguments: Any) -> RequestKey:
    """As if the client had sent none."""
    request = msgspec.structs.replace(arguments[0], headers={})
    return _request_key(request, *arguments[1:])


def _note_again(self: OutcomesDelta, record: Any, offset: int) -> None:
    if record.key not in self.by_key:
        _note(self, record, offset)


def _nothing(*_arguments: object) -> None:
    """What a forgotten line does."""


MUTANTS: dict[str, Mutant] = {
    "stale read": Mutant(((Reads, "linearizable", _at_once),), "rivals", 1),
    "read of what is not committed": Mutant(
        ((NodeView, "read", _read_what_is_proposed),), "rivals", 6
    ),
    "read below minOffset": Mutant(((Reads, "at_least", _at_once),), "rivals", 1),
    "acknowledged before commit": Mutant(((Pending, "when_committed", _at_once),), "", 1),
    "answer names another offset": Mutant(((changes, "_placed", _placed_before),), "", 1),
    "request id ignored": Mutant(((changes, "request_key", _another_id),), "", 1),
    "request executed twice": Mutant(
        ((Idempotency, "recall", _nothing), (OutcomesDelta, "note", _note_again)), "rivals", 3
    ),
    "shutdown offset forgotten": Mutant(((ClusterDelta, "settle", _nothing),), "", 1),
    "epochs forgotten": Mutant(((QuorumDelta, "begin", _nothing),), "", 1),
}


def broken(name: str) -> AbstractContextManager[None]:
    """Switch a protection off."""
    return patched(MUTANTS[name].patches)


@contextmanager
def judges_alone() -> Iterator[list[str]]:
    """Collect what the judgement says; nobody else is heard, and nothing ends the run."""
    found: list[str] = []
    judge, fail = Judgement.judge, World.fail
    judging = False

    def alone(self: Judgement) -> Any:
        nonlocal judging
        judging = True
        return judge(self)

    def collect(_world: World, message: str, _node_id: int | None) -> None:
        if judging:
            found.append(message)

    Judgement.judge, World.fail = alone, collect  # type: ignore[method-assign, assignment]
    try:
        yield found
    finally:
        Judgement.judge, World.fail = judge, fail  # type: ignore[method-assign]


def seen(name: str, seed: int) -> list[str]:
    """Return what the judges say of a broken build's run."""
    with broken(name), judges_alone() as found:
        try:
            run_seed(seed, kind=MUTANTS[name].kind)
        except Exception as error:  # noqa: BLE001 - a broken build breaks in many ways
            found.append(f"{type(error).__name__}: {error}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Let the judges look at broken controllers.")
    parser.add_argument("names", nargs="*", default=list(MUTANTS))
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    given = parser.parse_args()
    survivors = 0
    for name in given.names:
        for seed in range(given.first, given.first + given.count):
            found = seen(name, seed)
            if found:
                print(f"{name}: seed {seed}: {found[0][:300]}", flush=True)
                break
        else:
            survivors += 1
            print(f"{name}: NOT SEEN in {given.count} seeds", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
