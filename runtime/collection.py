"""Python's garbage collector, kept away from what stays.

Rule: whoever holds a large state says when it has settled (it was loaded, it was written to a
checkpoint); from then on the collector never looks at it again. A full collection over a million
objects stops the loop for 0.3 s, and finds nothing: what an image lets go is freed by its
reference counts, since there are no cycles in it.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
