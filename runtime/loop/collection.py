"""Keeps Python's garbage collector from scanning large long-lived state.

Rule: the owner of a large state calls `settled` after the state was loaded or written to a
checkpoint. From then on the collector never scans it again. A full collection over a million
objects stops the loop for 0.3 s and finds nothing: an image has no cycles, so reference counts free
all of it.

A state that grows triggers full collections, each over everything that was added since the last
one. They took half of the time in which 100,000 partitions were created, in pauses of up to 0.1 s.
So a process that holds an image calls `begin`, which turns automatic full collections off, and
calls `tend` now and then, which runs one while it is short.

This needs a collector with generations. Python 3.14.0 to 3.14.4 have another one, which ignores the
third threshold; Python 3.14.5 has the old one again.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from runtime.clock import Clock

TEND_EVERY_S = 10.0
_FEW = 3
"""Collections of the middle generation since the last full one. After so few, a full collection
takes 25 ms at most."""
_LONG_S = 0.008
"""After a full collection that takes longer, the next one leaves out what this one scanned."""
_YOUNG, _MIDDLE = 1_500, 0
"""The number of new objects after which Python collects the youngest generation, and the number of
such collections that the middle one skips. Python scans what survives once or twice, whatever these
numbers are. 64 requests that are under way at once hold about a thousand objects that are freed a
moment later. A collection every 200 objects scanned these too and cost a leader 7 % of its time.
With 1,000,000 partitions, 950 changes in one request, or a tenth of all topics that come and go,
make no slice longer than 12.5 ms, collections included (`make lateness`)."""


def begin() -> None:
    """Turn automatic full collections off. From now on the process must call `tend`."""
    gc.set_threshold(_YOUNG, _MIDDLE, sys.maxsize >> 32)


def tend(clock: Clock) -> None:
    """Run a full collection if few objects have grown old; else leave them out for good.

    Many old objects are a state that grows. To be called every `TEND_EVERY_S`.
    """
    if not gc.isenabled():
        return
    if gc.get_count()[2] > _FEW:
        gc.freeze()
    started = clock.monotonic()
    gc.collect()
    if clock.monotonic() - started > _LONG_S:
        # The objects that survived it are a state that grew. Few of them will become garbage.
        gc.freeze()


def keep_tended(clock: Clock) -> None:
    """Call `begin`, then `tend` for as long as the process lives."""

    def again() -> None:
        tend(clock)
        clock.call_later(TEND_EVERY_S, again)

    begin()
    clock.call_later(TEND_EVERY_S, again)


def loading() -> None:
    """Turn the collector off while a state is built up, until `settled`."""
    gc.disable()


def settled() -> None:
    """Leave all objects of the process out of every later collection.

    The young objects are collected first, in a few milliseconds, so that little garbage stays. Not
    so after `loading`: then all objects are young, and hardly any is garbage.
    """
    if gc.isenabled():
        gc.collect(1)
    gc.freeze()
    gc.enable()


@contextmanager
def resting() -> Iterator[None]:
    """Turn the collector off inside; afterwards it is as before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
