"""Broken builds of the quorum: each protection switched off, one at a time.

    python -m tests.simulation.quorum_mutants [NAME ...] --count 40

If the seeds don't fail for one of these, they prove nothing about it.
"""

import argparse
import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from quorum.dispatch import Dispatch
from quorum.frames import Entry
from quorum.guard import appends, following
from quorum.guard.elections import Elections
from quorum.guard.following import Following
from quorum.guard.log_view import LogView
from quorum.guard.outbox import Outbox
from quorum.guard.replication import Replication
from quorum.handing_up import HandingUp
from quorum.jump import Jump
from quorum.reads import Reads
from tests.simulation.patches import Patch, patched
from tests.simulation.quorum_seeds import run_many, say


def _always(value: object) -> Callable[..., Any]:
    def answer(*_args: object, **_named: object) -> object:
        return value

    return answer


def _give_the_core_everything(
    log: LogView, commit: int, previous: int, previous_term: int, entries: tuple[Entry, ...]
) -> appends.Judgement:
    """What the core as it comes does: match at `previous`, then truncate, conflict or not."""
    if log.term_at(previous) == previous_term and entries:
        return appends.Append(previous, previous_term, entries)
    return appends.judge(log, commit, previous, previous_term, entries)


class Mutant(NamedTuple):
    """What is switched off, and which seeds should see it."""

    patches: tuple[Patch, ...]
    kind: str
    nodes: int | None = None


_COUNT_UNSYNCED: Patch = (Replication, "borne_out", lambda self, index: index)
_HAND_UP_UNSYNCED: Patch = (HandingUp, "limit", lambda self: self._inside.view.last)

MUTANTS: dict[str, Mutant] = {
    "fsync hold": Mutant(((Outbox, "is_durable", _always(True)),), "power"),
    "answer hold": Mutant(((Following, "position_promised", _always(0)),), "power"),
    "append normalisation": Mutant(((following, "judge", _give_the_core_everything),), "wire"),
    # The leader's own copy is guarded twice, so both must go.
    "own copy": Mutant((_COUNT_UNSYNCED, _HAND_UP_UNSYNCED), "power"),
    "own copy, single voter": Mutant((_HAND_UP_UNSYNCED,), "power", 1),
    "read index": Mutant(((Reads, "is_confirmed", _always(True)),), "stale"),
    "vote once": Mutant(((Elections, "first_vote_of", _always(True)),), "wire", 5),
    "stamp": Mutant(((Dispatch, "is_current", _always(True)),), "wire"),
    "promise of another term": Mutant(((Outbox, "still_holds", _always(True)),), "slow"),
    "jump over what we hold": Mutant(((Jump, "_holds", _always(False)),), "lag"),
    "leader heard": Mutant(((Elections, "leader_heard", _always(False)),), "wire"),
}


def broken(name: str) -> AbstractContextManager[None]:
    """Switch a protection off."""
    return patched(MUTANTS[name].patches)


def failures(name: str, first: int, count: int) -> list[str]:
    """Return what failed, one line a seed."""
    with broken(name):
        mutant = MUTANTS[name]
        found = run_many(first, count, mutant.nodes, mutant.kind)
        return [outcome.failure.partition("\n")[0] for outcome in found if outcome.failure]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run seeds against broken builds.")
    parser.add_argument("names", nargs="*", default=list(MUTANTS))
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    given = parser.parse_args()
    logging.getLogger("pysyncobj").setLevel(logging.CRITICAL + 1)
    survivors = 0
    for name in given.names:
        found = failures(name, given.first, given.count)
        survivors += not found
        say(f"{name}: {len(found)} of {given.count} seeds failed")
        for line in found[:3]:
            say(f"    {line}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
