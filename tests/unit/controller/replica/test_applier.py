"""From committed bytes to images: in slices, in order, and never into a replaced ledger."""

import errno

import msgspec
import pytest
import structlog

from controller.replica.applier import Applier
from ledger.batch import BatchHeader, Provenance, parse, seal
from ledger.chain import LogMark
from ledger.ledger import Ledger
from metadata.codec import encode_records
from metadata.image import EMPTY
from metadata.records import NoOpRecord
from quorum.api import Mark
from runtime.loop.slices import run_in_slices
from runtime.simulated.clock import SimulatedClock
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
        self.failed, self.idle, self.seen = [], [], []
        self.applier = Applier(
            self.process.clock,
            on_batch=self.see,
            on_progress=lambda: None,
            on_own_skipped=self.failed.append,
            on_failed=self.failed.append,
            log=LOG,
        )
        self.ledger = self.open()

    def see(self, batch):
        image = self.applier.image
        self.seen.append((batch.header.end_offset, image.offset, image.transaction is not None))

    def open(self):
        return Ledger.open(self.disk, CLUSTER, synced_to=None, log=LOG)

    def run(self, call):
        """Run one event of the loop. What it schedules has not happened yet."""
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
    assert bench.applier.delivered == 20_005
    bench.world.run_for(5.0)
    assert bench.idle == [20_005]
    assert bench.applier.delivered == 20_005


def test_it_takes_turns_with_other_long_work(bench, monkeypatch):
    """A node with both roles: a pass of the loop has a slice of the applier or of the agent."""
    monkeypatch.setattr(SimulatedClock, "SOON_US", 100)
    bench.begin(bench.ledger)
    clock = bench.process.clock
    clock.cost_us = 2000
    passes = {"applier": set(), "other": set()}
    bench.applier._on_progress = lambda: passes["applier"].add(bench.world.now_us)

    def other():
        while not bench.applier.idle:
            passes["other"].add(bench.world.now_us)
            yield

    def both():
        bench.applier.on_committed(2, 1, batches(20_000, 5))
        run_in_slices(clock, other(), lambda: None)

    bench.run(both)
    bench.world.run_for(5.0)
    assert bench.applier.idle
    assert min(map(len, passes.values())) > 20
    assert not passes["applier"] & passes["other"]


def test_what_was_handed_up_before_the_ledger_is_open_counts_as_handed_up(bench):
    before, *behind, last = batches(3, 20_000, 5, 7)
    bench.run(lambda: bench.ledger.accept(1, parse(before)))  # an earlier incarnation's
    bench.run(lambda: bench.applier.on_committed(2, 1, behind))
    bench.process.clock.cost_us = 2000
    image = msgspec.structs.replace(EMPTY, offset=3)
    bench.run(lambda: bench.applier.begin(bench.ledger, image, Mark(1, 1, b"")))
    assert bench.applier.image.offset == 3
    assert bench.applier.delivered == 20_008  # a linearizable read waits for this
    bench.run(lambda: bench.applier.on_committed(3, 1, [last]))
    assert bench.applier.delivered == 20_015
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


# Replayed together.


def noted(bench):
    """Return the offsets at which the applier noted its state, for digests."""
    return [
        end for end, offset, in_transaction in bench.seen if end == offset and not in_transaction
    ]


def test_batches_that_wait_make_one_image(bench):
    bench.begin(bench.ledger)
    bench.run(lambda: bench.applier.on_committed(2, 1, batches(3, 4, 5)))
    assert bench.seen == [(3, 12, False), (7, 12, False), (12, 12, False)]
    assert bench.ledger.log_end == 12
    assert bench.applier.place.index == 2


def test_images_end_where_every_node_notes_its_state(bench):
    sizes = [100] * 50
    payloads = batches(*sizes)
    bench.begin(bench.ledger)
    bench.run(lambda: bench.applier.on_committed(2, 1, payloads))
    bench.world.run_for(1.0)
    assert noted(bench) == [1100, 2100, 3100, 4100, 5000]
    alone = Bench()
    alone.begin(alone.ledger)
    for number, payload in enumerate(payloads):
        alone.run(
            lambda number=number, payload=payload: alone.applier.on_committed(
                number + 2, 1, [payload]
            )
        )
    assert noted(alone) == [100 * (n + 1) for n in range(50)]
    assert alone.applier.image == bench.applier.image


def test_far_behind_images_are_few(bench):
    bench.begin(bench.ledger)
    bench.process.clock.cost_us = 50
    bench.run(lambda: bench.applier.on_committed(2, 1, batches(*[100] * 300)))
    bench.world.run_for(60.0)
    assert noted(bench) == [16_400, 26_000, 26_700, 27_700, 28_700, 29_700, 30_000]
    assert bench.ledger.log_end == bench.applier.image.offset == 30_000
    assert LogMark.decode(bench.applier.place.data) == bench.ledger.mark()


def test_a_place_to_cut_the_journal_at_never_lies_behind_the_ledger(bench):
    first, second, third = batches(3, 4, 5)
    bench.run(lambda: bench.applier.on_committed(2, 1, [first]))
    bench.run(lambda: bench.applier.on_committed(3, 1, [second, third]))
    bench.begin(bench.ledger)
    assert bench.applier.place.index == 3
    assert LogMark.decode(bench.applier.place.data) == bench.ledger.mark()


def test_a_batch_that_the_fence_keeps_out_stands_alone_among_others(bench):
    first, second, third = batches(3, 4, 5)
    bench.begin(bench.ledger)
    bench.run(lambda: bench.applier.on_committed(2, 1, [first, first, second, third]))
    assert bench.ledger.log_end == 12
    assert bench.applier.image.offset == 12
    assert noted(bench) == [3, 12]
    bench.run(lambda: bench.applier.on_committed(3, 2, [third]))
    assert bench.ledger.log_end == 12
    assert bench.failed == []


def test_what_stands_before_a_damaged_batch_is_applied(bench):
    first, second = batches(3, 4)
    damaged = second[:-1] + bytes([second[-1] ^ 1])
    bench.begin(bench.ledger)
    bench.run(lambda: bench.applier.on_committed(2, 1, [first, damaged]))
    assert bench.ledger.log_end == 3
    assert len(bench.failed) == 1


def test_a_disk_that_fills_up_among_them_loses_and_repeats_nothing(bench):
    bench.begin(bench.ledger)
    accept, room = bench.ledger.accept, [2]

    def limited(term, batch):
        if not room[0]:
            raise OSError(errno.ENOSPC, "no space left")
        room[0] -= 1
        return accept(term, batch)

    bench.ledger.accept = limited
    bench.run(lambda: bench.applier.on_committed(2, 1, batches(3, 4, 5, 6)))
    assert bench.applier.disk_full
    assert bench.ledger.log_end == 7
    assert [end for end, _, _ in bench.seen] == [3, 7]
    room[0] = 100
    bench.world.run_for(2.0)
    assert not bench.applier.disk_full
    assert bench.ledger.log_end == 18
    assert [end for end, _, _ in bench.seen] == [3, 7, 12, 18]
    assert bench.applier.image.offset == 18
    bench.run(lambda: bench.applier.on_committed(3, 1, batches(3, 4, 5, 6, 2)[-1:]))
    assert bench.applier.image.offset == 20
    assert bench.failed == []


@pytest.mark.parametrize("same", [True, False])
def test_a_catch_up_past_the_offset_of_the_loaded_checkpoint_is_checked_too(bench, same):
    """A catch-up replaces the ledger by one that continues later. Nothing is applied in between."""
    first, second, third = (parse(encoded) for encoded in batches(3, 4, 5))
    missed = []
    expected = second.hash if same else first.hash
    bench.applier.must_meet(7, expected, lambda: missed.append(7))
    bench.run(lambda: bench.ledger.accept(1, first))
    image = msgspec.structs.replace(EMPTY, offset=7)
    bench.run(lambda: bench.applier.begin(bench.ledger, image, Mark(1, 1, b"")))
    assert bench.failed == []
    bench.run(bench.applier.hold)
    for batch in (second, third):
        bench.run(lambda batch=batch: bench.ledger.accept(1, batch))
    image = msgspec.structs.replace(EMPTY, offset=12)
    bench.run(lambda: bench.applier.begin(bench.ledger, image, Mark(3, 1, b"")))
    bench.run(lambda: bench.applier.on_committed(4, 1, batches(3, 4, 5, 6)[-1:]))
    assert bench.applier.image.offset == (18 if same else 7)
    assert (missed == []) == same
    assert ("of another history" in "".join(bench.failed)) != same
