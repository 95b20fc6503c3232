"""Scrubbing the closed segments of a running journal finds every damaged one and no other."""

import pytest

from quorum.journal import DamagedError
from tests.unit.quorum.journal.rig import Rig, fill, manifest_at


@pytest.fixture
def rig() -> Rig:
    return Rig(segment_bytes=600)


def filled(rig: Rig):
    journal = rig.open()
    for first in range(1, 60, 6):
        fill(journal, first, first + 5)
        journal.sync()
        rig.settle()
    assert len(journal.segment_names) > 3
    return journal


def test_a_sound_journal_is_sound_in_every_life(rig: Rig) -> None:
    journal = filled(rig)
    sizes = [len(rig.platter.names[name].content) for name in journal.segment_names]
    read = sum(journal.scrub())
    assert 0 < read <= sum(sizes[:-1])
    rig.lose_power()
    journal = rig.open()
    assert sum(journal.scrub()) >= 0
    fill(journal, 61, 90)
    journal.sync()
    rig.settle()
    list(journal.scrub())


def test_every_byte_of_a_closed_segment_matters(rig: Rig) -> None:
    journal = filled(rig)
    name = journal.segment_names[1]
    for position in range(len(rig.platter.names[name].content)):
        rig.platter.flip_bit(name, position, position % 8)
        with pytest.raises(DamagedError, match=name):
            list(journal.scrub())
        rig.platter.flip_bit(name, position, position % 8)
    list(journal.scrub())


@pytest.mark.parametrize("how", ["removed", "cut", "another's"])
def test_a_segment_that_is_gone_short_or_another(rig: Rig, how: str) -> None:
    journal = filled(rig)
    first, second = journal.segment_names[:2]
    if how == "removed":
        rig.platter.remove(second)
    elif how == "cut":
        rig.platter.cut(second, 300)
    else:
        rig.platter.put(second, bytes(rig.platter.names[first].content))
    with pytest.raises(DamagedError, match=second):
        list(journal.scrub())


def test_segments_that_are_forgotten_meanwhile_are_passed_over(rig: Rig) -> None:
    journal = filled(rig)
    steps = journal.scrub()
    next(steps)
    manifest = manifest_at(journal, 55)
    rig.store().offer(manifest, lambda _: None)
    rig.settle()
    journal.delete_before(53)
    journal.sync()
    rig.settle()
    assert len(journal.segment_names) < 4
    list(steps)
