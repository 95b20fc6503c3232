"""Works on long lists with pauses, so that the loop isn't held (`runtime.loop.slices`).

Rule: between two pauses lie STEP elements, whose handling is short.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final, TypeVar

from kafka_listener.asking.request import KafkaFailure, Steps
from runtime.clock import Clock
from runtime.loop.slices import SlicedWork

STEP: Final = 64
SHORT: Final = 500
"""A request of so few elements is handled within the pass of the loop in which it came."""

T = TypeVar("T")
R = TypeVar("R")


def each(make: Callable[[T], R], elements: Iterable[T]) -> Generator[None, None, tuple[R, ...]]:
    """Return what `make` makes of each element."""
    made: list[R] = []
    for element in elements:
        made.append(make(element))
        if not len(made) % STEP:
            yield
    return tuple(made)


def chosen(fits: Callable[[T], bool], elements: Iterable[T]) -> Generator[None, None, list[T]]:
    """Return the elements that fit."""
    found: list[T] = []
    for count, element in enumerate(elements, 1):
        if fits(element):
            found.append(element)
        if not count % STEP:
            yield
    return found


def for_each(act: Callable[[T], None], elements: Iterable[T]) -> Steps:
    """Call `act` with each element."""
    for count, element in enumerate(elements, 1):
        act(element)
        if not count % STEP:
            yield


def distinct(elements: Iterable[T]) -> Iterator[T]:
    """Yield each element once, in the order of their first places."""
    seen: set[T] = set()
    for element in elements:
        if element not in seen:
            seen.add(element)
            yield element


def run(
    clock: Clock, steps: Steps, on_failed: Callable[[Exception], None], *, at_once: bool
) -> None:
    """Run steps in slices. `at_once`: the first slice within this call.

    What they raise within this call, this call raises. What they raise later, `on_failed` gets.
    """
    within = True

    def guarded() -> Steps:
        try:
            yield from steps
        except KafkaFailure as failed:
            if within:
                raise
            on_failed(failed)
        except Exception as error:
            if within:
                raise
            on_failed(error)

    SlicedWork(clock, guarded(), lambda: None).begin(at_once=at_once)
    within = False
