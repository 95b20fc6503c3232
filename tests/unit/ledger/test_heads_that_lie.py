"""Heads of batches have no checksum: an answer comes from proved heads, or there is an error.

With one bit flipped, a ledger once gave each of these answers wrongly, without an error.
"""

import pytest

from ledger.batch import HEAD, parse
from ledger.errors import DamagedLedgerError, LedgerError
from ledger.index import EpochStart
from ledger.ledger import Ledger
from ledger.reader import LedgerReader
from ledger.segments import SEGMENT_BYTES
from tests.unit.ledger.ledger_world import Node, fill, make_batches, marks_of

_COUNT_AT, _BASE_AT, _EPOCH_AT, _TIME_AT = 12, 16, 24, 32
"""Where the numbers stand in a batch's head (see `ledger.batch`)."""


class World:
    """Eight synced batches. The tests change heads in the first segment."""

    def __init__(
        self, epochs: dict[int, int] | None = None, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self.node = Node(segment_bytes=segment_bytes)
        self.batches = make_batches(8, per_batch=3, epochs=epochs or {})
        self.mark = self.node.sync(fill(self.node.open(), self.batches))
        self.node.settle()
        self.name = next(iter(self.node.files()))

    def set(self, number: int, at: int, value: int) -> None:
        """Write another number into a head; the checksum stays, and is wrong."""
        data = bytearray(self.node.files()[self.name])
        place = data.index(self.batches[number].encoded) + at
        size = 4 if at == _COUNT_AT else 8
        data[place : place + size] = value.to_bytes(size, "big")
        self.node.platter.put(self.name, bytes(data))

    def reader(self, *, with_mark: bool = True) -> LedgerReader:
        return LedgerReader(self.node.disk, synced_to=self.mark if with_mark else None)


def test_an_epoch_that_begins_elsewhere_is_found() -> None:
    """`end_offset_for_epoch` made a broker believe that its history was not ours."""
    epochs = {0: 1, 3: 2, 6: 7}
    world = World(epochs)
    bases = [batch.header.base_offset for batch in world.batches]
    right = [EpochStart(1, 0), EpochStart(2, bases[3]), EpochStart(7, bases[6])]
    assert world.node.reopen(world.mark).epoch_start_offsets == right
    for number, epoch in ((1, 3), (2, 2), (3, 1), (3, 3), (5, 7), (6, 2), (6, 3), (7, 15)):
        harmed = World(epochs)
        harmed.set(number, _EPOCH_AT, epoch)
        with pytest.raises(DamagedLedgerError):
            assert harmed.node.reopen(harmed.mark).epoch_start_offsets == right


def test_an_epoch_that_ends_elsewhere_than_the_next_segment_says_is_found() -> None:
    batches = make_batches(30, size=40, epochs={0: 1, 7: 2})
    node = Node(segment_bytes=2_500)
    mark = node.sync(fill(node.open(), batches))
    for name in node.files("index"):
        node.platter.unlink(name)
    first = next(iter(node.files()))
    ends = list(node.files())[1]
    last = max(
        (b for b in batches if b.header.end_offset <= int(ends[4:24])),
        key=lambda b: b.header.base_offset,
    )
    data = bytearray(node.files()[first])
    place = data.index(last.encoded) + _EPOCH_AT
    data[place : place + 8] = (9).to_bytes(8, "big")
    node.platter.put(first, bytes(data))
    with pytest.raises(DamagedLedgerError, match=first):
        node.reopen(mark).epoch_start_offsets  # noqa: B018 - asked for


@pytest.mark.parametrize("at", [_COUNT_AT, _BASE_AT])
@pytest.mark.parametrize("by", [-1, 1, 4, 64])
def test_no_end_of_a_batch_is_denied_for_a_head_that_lies(at: int, by: int) -> None:
    """In a segment with a kept index, the heads between the index's positions were trusted."""
    world = World(segment_bytes=1_200)
    assert len(world.node.files()) > 1
    header = world.batches[2].header
    value = (header.count if at == _COUNT_AT else header.base_offset) + by
    world.set(2, at, max(value, 0))
    refused = 0
    for batch in world.batches:
        end = batch.header.end_offset
        for ask, answer in (
            (lambda: world.reader().hash_at(end), batch.hash),  # noqa: B023 - asked at once
            (lambda: world.node.reopen(world.mark).hash_at(end), batch.hash),  # noqa: B023
            (lambda: world.reader().end_of_batch(end), end),  # noqa: B023
        ):
            try:
                assert ask() == answer
            except DamagedLedgerError:
                refused += 1
    assert refused


def test_the_state_at_a_time_ends_at_no_batch_whose_time_is_harmed() -> None:
    """`--at TIME` silently ended before a batch with a flipped bit in its time."""
    world = World()
    asked = world.batches[4].header.timestamp_ms
    assert world.reader().offset_at_time(asked) == world.batches[4].header.end_offset
    harmed = World()
    harmed.set(2, _TIME_AT, world.batches[2].header.timestamp_ms | 1 << 50)
    with pytest.raises(DamagedLedgerError):
        harmed.reader().offset_at_time(asked)


@pytest.mark.parametrize("at", [_COUNT_AT, _BASE_AT])
@pytest.mark.parametrize("by", [-1, 1, 2, 64])
@pytest.mark.parametrize("number", [0, 2])
def test_the_state_at_a_time_ends_where_a_batch_does(number: int, at: int, by: int) -> None:
    """Nothing checked where the first batch of a segment begins and where the last one ends."""
    world = World(segment_bytes=1_200)
    header = world.batches[number].header
    value = (header.count if at == _COUNT_AT else header.base_offset) + by
    if value >= (1 if at == _COUNT_AT else 0):
        world.set(number, at, value)
        reader = world.reader()
        with pytest.raises(DamagedLedgerError):
            list(reader.batches(0, reader.offset_at_time(header.timestamp_ms)))


def test_the_last_time_is_that_of_a_batch_that_is_whole() -> None:
    world = World()
    world.set(7, _TIME_AT, 1 << 50)
    with pytest.raises(DamagedLedgerError):
        world.reader().last_timestamp_ms()
    # Behind the mark it is an unfinished tail: the one before it counts.
    world.mark = marks_of(world.batches)[7]
    reader = world.reader()
    assert reader.last_timestamp_ms() == world.batches[6].header.timestamp_ms
    assert "not synced yet" in reader.notes[0]


def test_one_batch_of_an_unfinished_tail_is_an_error_of_the_ledger() -> None:
    """It used to raise StopIteration."""
    world = World()
    world.set(7, _TIME_AT, 5)
    world.mark = marks_of(world.batches)[7]
    with pytest.raises(LedgerError, match=r"is incomplete: .*not synced yet"):
        world.reader().hash_at(world.batches[7].header.end_offset)


def test_a_log_that_ends_before_what_was_synced_is_noted() -> None:
    """A segment that was cut between two batches, or a missing last one, was read as a shorter
    log.
    """
    world = World()
    data = world.node.files()[world.name]
    world.node.platter.put(world.name, data[: data.index(world.batches[6].encoded)])
    reader = world.reader()
    assert len(list(reader.batches())) == 6
    assert "Its end is lost" in reader.notes[0]
    assert world.reader(with_mark=False).notes == []


def test_another_ledger_s_segment_under_an_open_ledger_is_found() -> None:
    """Its batches continue each other, but not what the segment's header said."""
    world = World()
    ledger = world.node.reopen(world.mark)
    other = Node(cluster_id="another-cluster-000000")
    batches = make_batches(8, cluster_id=other.cluster_id)
    other.sync(fill(other.open(), batches))
    world.node.platter.put(world.name, other.files()[world.name])
    with pytest.raises(DamagedLedgerError, match="chain is broken"):
        list(ledger.batches(0))


@pytest.mark.parametrize("number", [0, 2, 3, 6])
def test_a_batch_that_went_astray_is_not_handed_out(number: int) -> None:
    """Every byte of it is right, but it is another ledger's batch of the same length."""
    world = World(segment_bytes=1_200)
    other = make_batches(8, cluster_id="another-cluster-000000")[number]
    batch = world.batches[number]
    assert len(other.encoded) == len(batch.encoded)
    for name, data in world.node.files().items():
        world.node.platter.put(name, data.replace(batch.encoded, other.encoded))
    base, end = batch.header.base_offset, batch.header.end_offset
    ledger = world.node.reopen(world.mark)
    for ask in (
        lambda: ledger.read_from(base, 1, ledger.log_end),
        lambda: handed_out(ledger),
        lambda: list(ledger.batches(base, end)),
        lambda: world.reader().batch_at(base),
        lambda: world.reader().hash_at(end),
    ):
        with pytest.raises(DamagedLedgerError):
            ask()


def handed_out(ledger: Ledger) -> None:
    offset = 0
    while frames := ledger.read_from(offset, 1 << 20, ledger.log_end):
        offset = parse(frames[-1]).header.end_offset


assert HEAD.format == ">4sHHIIqqq32sII"
