"""How old a stale read says it is: never less than it is, and not for ever more."""

import msgspec
import pytest

from controller.freshness import Freshness
from metadata.image import EMPTY

WALL_MS = 1_000_000


def at(offset, timestamp_ms=WALL_MS - 5_000):
    return msgspec.structs.replace(EMPTY, offset=offset, timestamp_ms=timestamp_ms)


@pytest.fixture
def fresh():
    return Freshness()


def test_before_a_leader_has_told_anything_the_newest_batch_says_how_old(fresh):
    assert fresh.age_ms(at(10), 100.0, WALL_MS) == 5_000
    assert fresh.age_ms(at(10, WALL_MS + 1), 100.0, WALL_MS) == 0


def test_what_is_told_counts_from_when_it_was_told_once_it_is_reached(fresh):
    fresh.told(10, at(10), 100.0)
    fresh.told(20, at(10), 101.0)
    assert fresh.age_ms(at(10), 103.0, WALL_MS) == 3_000
    assert fresh.age_ms(at(19), 103.0, WALL_MS) == 3_000
    assert fresh.age_ms(at(20), 103.0, WALL_MS) == 2_000


def test_a_node_that_is_always_a_little_behind_does_not_grow_old(fresh):
    for second in range(1_000):
        fresh.told(second, at(second - 1), float(second))
    assert fresh.age_ms(at(998), 1_000.0, WALL_MS) == 2_000


def test_a_node_that_hangs_grows_old_however_much_is_told(fresh):
    for second in range(1_000):
        fresh.told(second + 1, at(0), float(second))
    assert fresh.age_ms(at(0), 1_000.0, WALL_MS) == 5_000
    assert fresh.age_ms(at(1), 1_000.0, WALL_MS) == 1_000_000
