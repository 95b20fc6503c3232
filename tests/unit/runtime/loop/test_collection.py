"""Python's collector skips settled objects, and still frees those that come later."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from runtime.loop import collection
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World


class Knot:
    """Held by itself only, once let go."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def old_collections(size: int) -> int:
    """How many full collections a state of so many objects brings on while it grows."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    try:
        state = [[number] for number in range(size)]
    finally:
        gc.callbacks.remove(note)
    assert len(state) == size
    assert 0 in seen
    return seen.count(2)


def forget_what_there_is() -> None:
    """Let Python's collector count as at the start of a process, whatever tests ran before.

    It runs a full collection only after new objects have become a quarter of those that the last
    full collection found. So the second collection here must find few.
    """
    gc.collect()
    gc.freeze()
    gc.collect()


def test_a_state_that_grows_brings_on_no_full_collection() -> None:
    gc.set_threshold(700, 10, 10)
    forget_what_there_is()
    before = old_collections(400_000)
    collection.begin()
    after = old_collections(400_000)
    assert before > 0
    assert after == 0


def test_old_garbage_is_freed_while_there_is_little_and_a_large_state_is_left_out() -> None:
    gc.collect()
    gc.freeze()
    gone = weakref.ref(Knot())
    clock = SimulatedProcess(World(1), 1).clock
    collection.tend(clock)
    assert gone() is None
    # With the interpreter's own thresholds the count of middle collections depends on its version:
    # the youngest are collected after 700 objects, and after 2,000 from Python 3.13 on.
    collection.begin()
    state = [[number] for number in range(40_000)]
    gc.collect(1)
    frozen = gc.get_freeze_count()
    collection.tend(clock)
    assert gc.get_freeze_count() >= frozen + len(state)


def test_what_made_a_collection_long_is_left_out_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gc.collect()
    gc.freeze()
    state = [[number] for number in range(40_000)]
    gc.collect()
    frozen = gc.get_freeze_count()
    clock = SimulatedProcess(World(1), 1).clock
    times = iter([0.0, 0.001, 1.0, 1.1])
    monkeypatch.setattr(clock, "monotonic", lambda: next(times))
    collection.tend(clock)
    assert gc.get_freeze_count() == frozen
    collection.tend(clock)
    assert gc.get_freeze_count() >= frozen + len(state)


def test_the_process_tends_for_as_long_as_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    tended: list[float] = []
    world = World(1)
    clock = SimulatedProcess(world, 1).clock
    monkeypatch.setattr(collection, "tend", lambda clock: tended.append(clock.monotonic()))
    collection.keep_tended(clock)
    world.run_for(3.5 * collection.TEND_EVERY_S)
    assert len(tended) == 3


def test_what_has_settled_is_not_looked_at_again() -> None:
    gc.unfreeze()
    state = [[number] for number in range(1000)]
    collection.settled()
    assert gc.get_freeze_count() >= len(state)


def test_young_garbage_does_not_settle() -> None:
    gone = weakref.ref(Knot())
    collection.settled()
    assert gone() is None


def test_nothing_is_collected_while_loading_and_later_again() -> None:
    collection.loading()
    assert not gc.isenabled()
    collection.settled()
    assert gc.isenabled()
    gone = weakref.ref(Knot())
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("enabled", [True, False])
def test_resting_leaves_the_collector_as_it_was(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    with collection.resting():
        assert not gc.isenabled()
    assert gc.isenabled() is enabled


def _fail_at_rest() -> None:
    with collection.resting():
        raise KeyError


def test_resting_ends_with_an_error_too() -> None:
    with pytest.raises(KeyError):
        _fail_at_rest()
    assert gc.isenabled()
