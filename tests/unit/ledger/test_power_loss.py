"""Kills and losses of power at every step: synced bytes are there, the rest is written again."""

import random

import pytest

from ledger.chain import LogMark
from ledger.ledger import Accepted
from ledger.segments import ARCHIVE_FOLDER
from ledger.verify import verify_ledger
from tests.unit.ledger.ledger_world import CLUSTER, Node, fill, make_batches

BATCHES = make_batches(60, size=250, epochs={0: 1, 30: 2})
SEGMENT_BYTES = 3_000


def whole():
    node = Node(segment_bytes=SEGMENT_BYTES)
    fill(node.open(), BATCHES)
    return node.files()


WHOLE = whole()


class Incarnation:
    """What a controller does, with the mark that it may rely on."""

    def __init__(self, node, mark):
        self.node = node
        self.mark = mark
        """What the manifest would name."""

    def run(self, rounds):
        ledger = self.node.open(self.mark if self.mark.log_end else None)
        rest = [b for b in BATCHES if b.header.base_offset >= ledger.log_end]
        for i, batch in enumerate(rest[:rounds]):
            assert isinstance(ledger.accept(batch.header.epoch, batch), Accepted)
            if i % 5 == 4:
                self.sync(ledger)

    def sync(self, ledger):
        mark = ledger.mark()

        def done(error):
            if error is None:
                self.mark = mark

        ledger.sync(done)


def check(node, mark):
    """After a loss of power: everything before the mark is there, and the rest can be written
    again.
    """
    node.start()
    report = verify_ledger(node.disk, cluster_id=CLUSTER, synced_to=mark) if mark.log_end else None
    assert report is None or report.ok, report
    ledger = node.open(mark if mark.log_end else None)
    assert ledger.mark() == mark
    before = [b.encoded for b in BATCHES if b.header.end_offset <= mark.log_end]
    assert [b.encoded for b in ledger.batches(0)] == before
    fill(ledger, [b for b in BATCHES if b.header.base_offset >= mark.log_end])
    assert node.files() == WHOLE
    node.settle()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["power", "kill"])
def test_a_death_at_every_step_loses_nothing_that_was_synced(how):
    for step in range(400):
        node = Node(seed=step, segment_bytes=SEGMENT_BYTES)
        incarnation = Incarnation(node, LogMark.beginning(CLUSTER))
        node.faults.kill_at(step, torn=(step % 5) / 4)
        node.process.run(lambda incarnation=incarnation: incarnation.run(60))
        node.settle()
        died = not node.process.alive
        node.faults.spare()
        if how == "power":
            node.lose_power()
        check(node, incarnation.mark)
        if not died:
            assert step > 100
            return
    raise AssertionError


@pytest.mark.parametrize("seed", range(40))
def test_many_lives_that_end_badly(seed):
    dice = random.Random(seed)
    node = Node(seed=seed, segment_bytes=SEGMENT_BYTES)
    incarnation = Incarnation(node, LogMark.beginning(CLUSTER))
    for _ in range(6):
        node.faults.kill_at(dice.randrange(120), torn=dice.random())
        node.process.run(lambda: incarnation.run(dice.randrange(40)))
        node.world.run_for(dice.choice([0.0, 0.0005, 0.01, 5.0]))
        node.faults.spare()
        if dice.random() < 0.7:
            node.lose_power()
        node.start()
    if dice.random() < 0.5:
        node.lose_power()
    check(node, incarnation.mark)


def test_a_death_at_every_step_of_archiving_loses_nothing():
    for step in range(60):
        node = Node(seed=step, segment_bytes=SEGMENT_BYTES)
        ledger = fill(node.open(), BATCHES)
        mark = node.sync(ledger)
        node.faults.kill_at(step)
        node.process.run(lambda ledger=ledger, mark=mark: ledger.archive_before(mark.log_end))
        died = not node.process.alive
        node.faults.spare()
        node.lose_power()
        ledger = node.reopen(mark)
        assert [b.encoded for b in ledger.batches(0)] == [b.encoded for b in BATCHES]
        both = set(node.files()) | {
            name.replace(ARCHIVE_FOLDER + "/", "log/") for name in node.files(ARCHIVE_FOLDER)
        }
        assert both == set(WHOLE)
        if not died:
            return
    raise AssertionError
