"""Broken builds of the quorum: each protection switched off, one at a time.

    python -m tests.simulation.quorum_mutants [NAME ...] --count 40

If the seeds don't fail for one of these, they prove nothing about it.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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

from tests.simulation.quorum_seeds import run_many

Patch = tuple[object, str, Callable[..., Any]]


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


MUTANTS: dict[str, Patch] = {
    "fsync hold": (Outbox, "is_durable", _always(True)),
    "append hold": (Following, "position_promised", _always(0)),
    "append normalisation": (following, "judge", _give_the_core_everything),
    "ack hold": (Replication, "borne_out", lambda self, acked: acked),
    "hand-up hold": (HandingUp, "limit", lambda self: self._inside.view.last),
    "vote once": (Elections, "first_vote_of", _always(True)),
    "read index": (Reads, "is_confirmed", _always(True)),
    "stamp": (Dispatch, "is_current", _always(True)),
    "promise of another term": (Outbox, "still_holds", _always(True)),
    "jump over what we hold": (Jump, "_holds", _always(False)),
    "leader heard": (Elections, "leader_heard", _always(False)),
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Switch a protection off."""
    where, attribute, instead = MUTANTS[name]
    before = getattr(where, attribute)
    setattr(where, attribute, instead)
    try:
        yield
    finally:
        setattr(where, attribute, before)


def failures(name: str, first: int, count: int, kind: str | None = None) -> list[str]:
    """Return what failed, one line a seed."""
    with broken(name):
        found = run_many(first, count, kind=kind)
        return [outcome.failure.partition("\n")[0] for outcome in found if outcome.failure]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run seeds against broken builds.")
    parser.add_argument("names", nargs="*", default=list(MUTANTS))
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--kind", default=None)
    given = parser.parse_args()
    survivors = 0
    for name in given.names:
        found = failures(name, given.first, given.count, given.kind)
        survivors += not found
        print(f"{name}: {len(found)} of {given.count} seeds failed", flush=True)
        for line in found[:3]:
            print(f"    {line}", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
