"""Kills and losses of power at any moment lose nothing durable and invent nothing.

The check: what is read back equals what the journal held at *some* time, at or after the durable
position of the crash. So nothing durable is lost, no frame is skipped, and no truncation or vote is
undone.
"""

from random import Random

import pytest

from quorum.journal import RaftJournal
from quorum.journal.manifest import JournalManifest
from runtime.simulated.process import Death
from runtime.simulated.world import ProcessKilledError
from tests.unit.quorum.journal.rig import Rig, manifest_at

Snapshot = tuple[list[tuple[bytes, int, int]], int, object, bytes | None]


class History:
    """What a journal held at each position."""

    def __init__(self) -> None:
        self.journal: RaftJournal | None = None
        self.manifest: JournalManifest | None = None
        self.jumps = 0
        self._moments: list[tuple[int, Snapshot]] = []

    def begin(self, journal: RaftJournal) -> None:
        self.journal = journal
        self._moments = []
        self.note()

    def note(self) -> None:
        assert self.journal is not None
        self._moments.append((self.journal.written_position, snapshot(self.journal)))

    def check(self, journal: RaftJournal) -> None:
        """The journal was opened after a crash."""
        assert journal.damage == ""
        assert journal.durable_position == journal.written_position
        if self.journal is None:
            return
        durable = self.journal.durable_position
        newest = max(i for i, (position, _) in enumerate(self._moments) if position <= durable)
        allowed = [self._dropped(moment) for _, moment in self._moments[newest:]]
        assert snapshot(journal) in allowed

    def _dropped(self, moment: Snapshot) -> Snapshot:
        """As an opening with the manifest makes of it."""
        if self.manifest is None:
            return moment
        held, term, vote, formation = moment
        pair = [self.manifest.first, self.manifest.second]
        place = pair[0][1] - held[0][1] if held else 0
        if held[place : place + 2] == pair:
            return held[place:], term, vote, formation
        if pair[1][2] > term:
            term, vote = pair[1][2], None
        return pair, term, vote, formation


def snapshot(journal: RaftJournal) -> Snapshot:
    return (
        list(journal[:]),
        journal.term,
        journal.voted_for,
        journal.formation,
    )


def step(rig: Rig, dice: Random, journal: RaftJournal, history: History) -> None:
    """One thing that a node does with its journal."""
    held = len(journal)
    last, term = journal.last_index, journal.term
    draw = dice.random()
    if draw < 0.45:
        size = dice.choice([0, 10, 100, 700])
        journal.add(dice.randbytes(size), last + 1, term)
    elif draw < 0.52 and held > 4:
        place = dice.randrange(max(2, held - 3), held)
        if journal[place][1] > journal.commit_index:
            journal.delete_from(place)
    elif draw < 0.60:
        journal.set_term(term + 1, dice.choice([None, "2@dir"]))
    elif draw < 0.62:
        journal.set_formation(dice.randbytes(8))
    elif draw < 0.68 and journal.durable_index - journal.first_index >= 2:
        index = dice.randint(journal.first_index + 1, journal.durable_index)
        history.manifest = manifest_at(journal, index)
        journal.delete_before(index - 1 - journal.first_index)
    elif draw < 0.70:
        install(dice, journal, history)
    elif draw < 0.75:
        journal.set_commit_index(max(1, last - 2))
        journal.on_second()
    elif draw < 0.85:
        journal.sync()
    elif draw < 0.95:
        rig.settle(dice.choice([0.0005, 0.002, 1]))
    else:
        journal.note_synced()
    history.note()


def install(dice: Random, journal: RaftJournal, history: History) -> None:
    """A catch-up: the manifest is durable before the core begins again from it."""
    index = journal.last_index + dice.choice([-1, 2, 50])
    newest = history.manifest.second[1] if history.manifest is not None else 1
    if index - 1 <= max(newest, journal.commit_index):
        return
    # A leader of a term of its own: one index and term is one entry, for ever.
    history.jumps += 1
    term = history.jumps * 1000
    journal.set_term(term, None)
    history.note()
    first, second = (b"far", index - 1, term), (b"further", index, term)
    history.manifest = JournalManifest(
        cluster_id="cluster-a",
        first=first,
        second=second,
        mark_data=b"",
        voters=(),
        directory_id=journal.directory_id,
        journal_position=journal.durable_position,
    )
    journal.clear()
    history.note()
    journal.add(*first)
    history.note()
    journal.add(*second)


@pytest.mark.parametrize("block", range(4))
def test_crashes_at_random(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        dice = Random(seed)
        rig = Rig(seed, segment_bytes=dice.choice([400, 3000, 1 << 20]))
        history = History()
        for _ in range(dice.randint(2, 6)):
            journal = rig.open(history.manifest)
            history.check(journal)
            history.begin(journal)
            for _ in range(dice.randint(0, 60)):
                step(rig, dice, journal, history)
            assert rig.failures == []
            if dice.random() < 0.2:
                journal.close()
            crash(rig, dice.choice([Death.POWER, Death.KILLED]))


def incarnation(rig: Rig, history: History, dice: Random) -> None:
    journal = rig.open(history.manifest)
    history.begin(journal)
    for _ in range(40):
        step(rig, dice, journal, history)


@pytest.mark.parametrize("how", [Death.KILLED, Death.POWER])
@pytest.mark.parametrize("torn", [0.0, 0.5])
def test_a_crash_at_every_step_of_the_disk(how: Death, torn: float) -> None:
    """Also of the opening itself, and of the opening after a crash in the opening."""
    at = 0
    while True:
        rig = Rig(at, segment_bytes=900)
        history = History()
        rig.faults.kill_at(at, torn)
        try:
            incarnation(rig, history, Random(7))
            rig.settle()
        except ProcessKilledError:
            pass
        if rig.process.alive:
            break
        for again in range(3):
            crash(rig, how)
            rig.faults.kill_at(again, torn)
            try:
                journal = rig.open(history.manifest)
            except ProcessKilledError:
                continue
            history.check(journal)
            history.begin(journal)
        crash(rig, how)
        rig.faults.heal()
        history.check(rig.open(history.manifest))
        at += 1
    assert at > 40


def crash(rig: Rig, how: Death) -> None:
    if how is Death.POWER:
        rig.lose_power()
    else:
        rig.kill()
