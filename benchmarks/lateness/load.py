"""The type of a load of `make lateness`."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from benchmarks.lateness.stage import Stage

Run = Callable[[Stage], Awaitable[None]]


class Load(NamedTuple):
    """One row of the table."""

    name: str
    routes: tuple[str, ...]
    run: Run
    records: tuple[str, ...] = ()
    """Classes of the records that it writes."""
    kafka: tuple[tuple[str, int], ...] = ()
    """Listeners of Kafka's protocol ("controller", "agent"), with the api keys that it sends."""
