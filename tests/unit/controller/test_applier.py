"""From committed bytes to images: in slices, in order, and never into a ledger that has gone."""

import msgspec
import pytest
import structlog

from controller.applier import Applier
from ledger.batch import BatchHeader, Provenance, parse, seal
from ledger.chain import LogMark
from ledger.ledger import Ledger
from metadata.codec import encode_records
from metadata.image import EMPTY
from metadata.records import NoOpRecord
from quorum.api import Mark
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.world import World

CLUSTER = "applying"
LOG = structlog.wrap_logger(None, processors=[structlog.testing.LogCapture()])


def batches(*counts):
    mark, made = LogMark.beginning(CLUSTER), []
    for count in counts:
        header = BatchHeader(mark.log_end, count, 1, mark.timestamp_ms, Provenance(), mark.head)
        made.append(seal(header, encode_records([NoOpRecord()] * count)))
        mark = mark.after(made[-1])
    return [batch.encoded for batch in made]


class Bench:
    def __init__(self):
        self.world = World(1)
        host = SimulatedHost(self.world, SimulatedNetwork(self.world), 1)
        self.process = host.boot()
        self.disk = host.disk()
        self.failed, self.idle = [], []
        self.applier = Applier(
            self.process.clock,
            on_batch=lambda batch: None,
            on_progress=lambda: None,
            on_own_skipped=self.failed.append,
            on_failed=self.failed.append,
            log=LOG,
        )
        self.ledger = self.open()

    def open(self):
        return Ledger.open(self.disk, CLUSTER, synced_to=None, log=LOG)

    def run(self, call):
        """One event; what it puts off has yet to happen."""
        self.process.run(call)

    def begin(self, ledger):
        self.run(lambda: self.applier.begin(ledger, EMPTY, Mark(0, 0, b"")))


@pytest.fixture
def bench():
    return Bench()


def test_what_comes_before_the_ledger_is_open_waits(bench):
    bench.run(lambda: bench.applier.on_committed(2, 1, batches(3, 4)))
    assert bench.applier.image.offset == 0
    assert not bench.applier.idle
    bench.begin(bench.ledger)
    assert bench.applier.image.offset == 7
    assert bench.applier.place.index == 2
    assert bench.applier.idle


def test_a_long_batch_is_applied_in_slices_and_idle_means_all_of_it(bench):
    bench.begin(bench.ledger)
    bench.process.clock.cost_us = 2000

    def commit():
        bench.applier.on_committed(2, 1, batches(20_000, 5))
        bench.applier.when_idle(lambda: bench.idle.append(bench.applier.image.offset))

    bench.run(commit)
    assert bench.applier.image.offset == 0
    assert bench.idle == []
    assert bench.applier.handed_up == 20_005
    bench.world.run_for(5.0)
    assert bench.idle == [20_005]
    assert bench.applier.handed_up == 20_005


def test_what_was_handed_up_before_the_ledger_is_open_counts_as_handed_up(bench):
    before, *behind, last = batches(3, 20_000, 5, 7)
    bench.run(lambda: bench.ledger.accept(1, parse(before)))  # an earlier life's
    bench.run(lambda: bench.applier.on_committed(2, 1, behind))
    bench.process.clock.cost_us = 2000
    image = msgspec.structs.replace(EMPTY, offset=3)
    bench.run(lambda: bench.applier.begin(bench.ledger, image, Mark(1, 1, b"")))
    assert bench.applier.image.offset == 3
    assert bench.applier.handed_up == 20_008  # a linearizable read waits for this
    bench.run(lambda: bench.applier.on_committed(3, 1, [last]))
    assert bench.applier.handed_up == 20_015
    bench.world.run_for(5.0)
    assert bench.applier.image.offset == 20_015


def test_a_batch_that_is_half_replayed_dies_with_its_ledger(bench):
    bench.begin(bench.ledger)
    bench.process.clock.cost_us = 2000
    bench.run(lambda: bench.applier.on_committed(2, 1, batches(20_000)))
    bench.run(bench.applier.hold)
    bench.process.clock.cost_us = 0
    bench.world.run_for(1.0)
    assert bench.ledger.log_end == 0
    bench.begin(bench.ledger)
    bench.world.run_for(1.0)
    assert bench.applier.image.offset == 0
    bench.run(lambda: bench.applier.on_committed(3, 1, batches(2)))
    assert bench.applier.image.offset == 2
    assert bench.failed == []


def test_bytes_that_are_no_batch_stop_the_node(bench):
    bench.begin(bench.ledger)
    bench.run(lambda: bench.applier.on_committed(2, 1, [b"not a batch"]))
    assert len(bench.failed) == 1
    bench.run(lambda: bench.applier.on_committed(3, 1, batches(2)))
    assert bench.applier.image.offset == 0
