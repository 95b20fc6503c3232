"""The collector leaves alone what has settled, and still frees what comes later."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from runtime import collection


class Knot:
    """Held by itself only, once let go."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


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
