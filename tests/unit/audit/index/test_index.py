"""An index answers as the log does: searches, states, differences, histories of entries."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.index.log_index import LogIndex
from audit.index.opening import IndexKeeper
from audit.index.schema import LEFT_OUT, TABLE_NUMBERS
from audit.places.replicas import Replica, one_replica
from audit.questions.diff import between_offsets
from audit.questions.search import Filter, search
from audit.questions.state import state_at
from audit.questions.state_words import entries
from audit.reading.settling import settled
from tests.unit.audit.nodes import write_node

TABLES = [name for name in TABLE_NUMBERS if name not in LEFT_OUT]


class Indexed:
    """A node's folder with a legal history, and its index."""

    def __init__(self, folder: Path, seed: int, batches: int = 90) -> None:
        self.images = write_node(folder / "node", batches, seed, checkpoint_every=200)
        self.replica: Replica = one_replica(str(folder / "node"))
        self.reader = self.replica.reader()
        self.keeper = IndexKeeper(folder / "cache", self.replica, self.reader)
        self.keeper.bring_up(self.reader)
        self.index = LogIndex(self.keeper.path)
        self.ends = [image.offset for image in self.images]

    def close(self) -> None:
        self.index.close()
        self.keeper.close()


@pytest.fixture(params=range(3), scope="module")
def indexed(request, tmp_path_factory) -> Iterator[Indexed]:
    found = Indexed(tmp_path_factory.mktemp("indexed"), request.param)
    yield found
    found.close()


def whole_state(index: LogIndex, at: int, limit: int = 7) -> dict[str, list]:
    """Every entry of every table, read page by page."""
    found = {}
    for table in TABLES:
        after, some = "", []
        while True:
            page = index.entries(at, table, after=after, limit=limit)
            some += [(entry.name, entry.fields) for entry in page.items]
            after = page.next
            if not after:
                break
        found[table] = some
    return found


def by_name(found: list) -> list:
    return sorted(found, key=lambda one: (one[0], repr(one[1])))


def test_the_state_at_every_moment_is_that_of_a_replay(indexed: Indexed) -> None:
    for at in [0, *indexed.ends]:
        image = state_at(indexed.replica, at, with_hash=False).image
        found = whole_state(indexed.index, at)
        counts = indexed.index.counts(at)
        for table in TABLES:
            expected = [(e.name, e.fields) for e in entries(image, table)]
            assert by_name(found[table]) == by_name(expected), (at, table)
            assert counts.get(table, 0) == len(expected), (at, table)


def test_a_difference_is_that_of_two_replays(indexed: Indexed) -> None:
    dice = random.Random(1)
    for _ in range(25):
        one, other = dice.choices([0, *indexed.ends], k=2)
        expected = [
            (d.table, d.name, d.kind, dict(d.fields))
            for d in between_offsets(indexed.replica, one, other, with_hash=False).changes()
            if d.table not in LEFT_OUT
        ]
        found, begin = [], ""
        while True:
            page = indexed.index.differences(one, other, begin=begin, limit=9)
            found += [(d.table, d.name, d.kind, d.fields) for d in page.items]
            begin = page.next
            if not begin:
                break
        assert sorted(found, key=repr) == sorted(expected, key=repr), (one, other)
        counted = indexed.index.different(one, other)
        assert sum(n for kinds in counted.values() for n in kinds.values()) == len(expected)


FILTERS = [
    Filter(),
    Filter(resources=("topic:*",)),
    Filter(resources=("partition:*-1", "broker:2")),
    Filter(resources=("*1*",)),
    Filter(resources=("quorum",)),
    Filter(principal="ali*"),
    Filter(principal="nobody"),
    Filter(operation="T?st", types=("PARTITION_CHANGE_RECORD", "TOPIC_RECORD")),
    Filter(outcomes=("aborted",)),
    Filter(outcomes=("aborted", "open")),
    Filter(outcomes=("settled",), resources=("user:*",)),
    Filter(outcomes=("settled", "aborted")),
]


@pytest.mark.parametrize("wanted", FILTERS)
def test_a_search_finds_what_a_pass_over_the_log_finds(indexed: Indexed, wanted: Filter) -> None:
    end = indexed.reader.log_end
    for start, until in ((0, end), (end // 3, end // 2)):
        expected = [
            one.logged.offset
            for one in search(indexed.replica, indexed.reader, wanted, start, until)
        ]
        assert indexed.index.offsets(wanted, start, until) == expected
        newest = indexed.index.offsets(wanted, start, until, newest_first=True, limit=5)
        assert newest == expected[::-1][:5]
        batches, count = indexed.index.batches_with(wanted, start, until, 3)
        assert (
            sorted(o for _, some in batches for o in some)
            == expected[-len([o for _, some in batches for o in some]) :]
        )
        assert count >= len(batches)


def test_outcomes_and_subjects_are_those_of_the_log(indexed: Indexed) -> None:
    for logged in settled(indexed.reader.batches()):
        (record,) = indexed.index.records([logged.offset])
        assert record.outcome == logged.outcome == indexed.index.outcome(logged.offset)
        assert record.cause.base == logged.header.base_offset
        assert record.cause.time_ms == logged.header.timestamp_ms
