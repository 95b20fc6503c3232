"""Keeps Python's garbage collector from scanning large long-lived state.

Rule: the owner of a large state reports when the state has settled (it was loaded, or written to a
checkpoint). From then on the collector never scans it again. A full collection over a million
objects stops the loop for 0.3 s and finds nothing: an image has no cycles, so reference counts free
all of it.

A state that grows triggers full collections, each over everything that was added since the last
one. They took half of the time in which 100,000 partitions were created, in pauses of up to 0.1 s.
So a process that holds an image calls `begin`, which turns automatic full collections off, and
calls `tend` now and then, which runs one when it is short.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from runtime.clock import Clock

TEND_EVERY_S = 10.0
_FEW = 3
"""Collections of the middle ones. What has grown old since then is looked at within 25 ms."""
_LONG_S = 0.008
"""A collection that takes longer looked at too much to do the same again."""
_YOUNG, _MIDDLE = 200, 1
"""New objects before Python collects the youngest, and such collections before it collects the
middle ones. Python looks at each new object twice, whatever these numbers are: they only say how
many it looks at in one go. With 1,000 and 15 that took 60 ms, with 700 and 1 up to 35 ms on a busy
machine, since each new bucket of a large image refers to 60 objects, most of them in no cache."""


def begin() -> None:
    """Let Python look at young objects only, from now on; the process calls `tend`."""
    gc.set_threshold(_YOUNG, _MIDDLE, sys.maxsize >> 32)


def tend(clock: Clock) -> None:
    """Collect what is old if it is little; else it is a state that grows: leave it out for good.

    Call it every `TEND_EVERY_S`.
    """
    if not gc.isenabled():
        return
    if gc.get_count()[2] > _FEW:
        gc.freeze()
    started = clock.monotonic()
    gc.collect()
    if clock.monotonic() - started > _LONG_S:
        # What it found alive has grown since the last time. Little of it is garbage now.
        gc.freeze()


def keep_tended(clock: Clock) -> None:
    """Begin, and tend for as long as the process lives."""

    def again() -> None:
        tend(clock)
        clock.call_later(TEND_EVERY_S, again)

    begin()
    clock.call_later(TEND_EVERY_S, again)


def loading() -> None:
    """Begin to build up a state: nothing is collected until `settled`."""
    gc.disable()


def settled() -> None:
    """What is in memory now mostly stays: leave it out of every later collection.

    The young objects are looked at first (a few milliseconds), so that hardly any garbage stays;
    behind `loading` all are young, and next to none of them garbage.
    """
    if gc.isenabled():
        gc.collect(1)
    gc.freeze()
    gc.enable()


@contextmanager
def resting() -> Iterator[None]:
    """Build up a state and be done with it: nothing is collected inside, all is as before after."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
