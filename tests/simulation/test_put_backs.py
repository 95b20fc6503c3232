"""A folder is copied, put back, flipped, and its node killed, in any order; the peers are sound.

Rule: what the peers know of the folder says what must be detected. If the node starts on a copy
that is older than that, or damaged, it calls itself damaged within an election timeout, or is
repaired by then. No peer ever calls itself damaged. In a calm cluster the copies lack little, in a
busy one much.
"""

from collections import deque
from random import Random
from typing import NamedTuple

import pytest

from quorum.journal import RaftJournal
from quorum.journal.frames import JournalFrameKind
from quorum.journal.lineage import DRAWN_BYTES, INCARNATION_BYTES
from runtime.simulated.host import SimulatedHost
from tests.mutants.table import broken
from tests.simulation.quorum_scenario import cluster, followers_of, frames, note, role

pytestmark = pytest.mark.simulation

WAITS_S = (0.005, 0.02, 0.1, 0.3, 1.1)
FOUND_WITHIN_S = 0.6
REPAIRED_WITHIN_S = 4.0
GENERATION_BYTES = INCARNATION_BYTES - DRAWN_BYTES


class Copy(NamedTuple):
    """A folder at a moment."""

    incarnations: list[bytes]
    end: int
    is_damaged: bool
    files: dict[str, bytes]

    def lacks(self, incarnation: bytes, position: int) -> bool:
        """Whether it was made before an incarnation came so far; what a repair made good is not
        lacking.
        """
        newest = self.incarnations[-1]
        if incarnation == newest:
            return position > self.end
        return (
            incarnation not in self.incarnations
            and incarnation[:GENERATION_BYTES] >= newest[:GENERATION_BYTES]
        )


class PutBacks:
    """One run."""

    def __init__(self, seed: int, *, calm: bool) -> None:
        self.dice = Random(seed)
        self.made = cluster(seed, tail_bytes=self.dice.choice((20_000, 10_000_000)))
        self.calm = calm
        if calm:
            self.made.busy = False
            self.made.world.run_for(1.5)
        self.victim = self.dice.choice(followers_of(self.made))
        self.others = [n for n in self.made.hosts if n != self.victim]
        self.directory = self.journal.directory_id
        self.copies: list[Copy] = []
        self.found = 0

    @property
    def host(self) -> SimulatedHost:
        return self.made.hosts[self.victim]

    @property
    def journal(self) -> RaftJournal:
        return self.made.owners[self.victim].quorum.context.journal

    @property
    def is_damaged(self) -> bool:
        return role(self.made, self.victim) == "damaged"

    def wait(self, seconds: float) -> None:
        self.made.world.run_for(seconds)
        for n in self.others:
            assert role(self.made, n) != "damaged", note(self.made, n)

    def work(self) -> None:
        """Let some time pass, perhaps with a change, and take a copy."""
        leader = self.made.serving()
        if self.calm and leader in self.others and self.dice.random() < 0.7:
            owner = self.made.owners[leader]
            owner.process.run(lambda: self.made.proposers._burst(owner, 1))
        self.wait(self.dice.choice(WAITS_S))
        incarnations = [incarnation for incarnation, _ in self.journal.history.lineage.incarnations]
        end = self.journal.written_position
        self.copies.append(Copy(incarnations, end, self.is_damaged, self.host.platter.snapshot()))

    def must_be_found(self, copy: Copy) -> bool:
        """Return whether a peer knows of a later moment than a copy's."""
        told = [
            self.made.owners[n].quorum.context.journal.history.known.get(self.directory)
            for n in self.others
        ]
        return copy.is_damaged or any(known is not None and copy.lacks(*known) for known in told)

    def inject(self) -> None:
        """End the process, do something to its folder or nothing, and begin again."""
        dice, host = self.dice, self.host
        may = self.is_damaged or not self.journal.history.repair_is_noted
        (host.lose_power if dice.random() < 0.3 else host.kill)()
        act = dice.choice(("an older copy", "an older copy", "the newest copy", "a flip", ""))
        must = False
        if act == "a flip":
            where = frames(
                host.platter,
                dice.choice(
                    (JournalFrameKind.ENTRY, JournalFrameKind.VOTE, JournalFrameKind.INCARNATION)
                ),
            )
            if where:
                host.platter.flip_bit(*where[dice.randrange(max(1, len(where) // 2))])
        elif act:
            copy = dice.choice(self.copies) if "older" in act else self.copies[-1]
            host.platter.restore(copy.files)
            must = self.must_be_found(copy)
        self.made.start(self.victim)
        self.see(must, may or bool(act), act)

    def see(self, must: bool, may: bool, act: str) -> None:
        """Look for damage, which must be found, may be, or neither."""
        for _ in range(int(FOUND_WITHIN_S / 0.01)):
            if self.is_damaged:
                break
            self.wait(0.01)
        if must:
            self.found += 1
            repairs = self.made.owners[self.victim].quorum.context.repairs
            assert self.is_damaged or repairs, (
                f"{act} passes for the folder: {self.journal.history.known}"
            )
        assert may or not self.is_damaged, f"accused: {note(self.made, self.victim)}"
        if self.dice.random() < 0.6:
            until = self.dice.uniform(0.5, 1) * REPAIRED_WITHIN_S
            self.made.world.run_for(until, lambda: not self.is_damaged)
            self.wait(0)


def run(seed: int, *, calm: bool) -> int:
    """Return how often something had to be found, and was."""
    scenario = PutBacks(seed, calm=calm)
    for _ in range(scenario.dice.randrange(4, 12)):
        for _ in range(scenario.dice.randrange(1, 3)):
            scenario.work()
        scenario.inject()
    return scenario.found


@pytest.mark.parametrize("calm", [True, False])
def test_whatever_is_put_back_is_found(calm: bool) -> None:
    assert sum(run(seed, calm=calm) for seed in range(1, 16)) >= 20


def test_a_build_that_credits_a_life_with_what_the_next_start_wrote_is_caught() -> None:
    build = broken("a life is credited with what the next start wrote")
    with build, pytest.raises(AssertionError, match="passes for the folder"):
        deque((run(seed, calm=True) for seed in range(1, 40)), 0)
