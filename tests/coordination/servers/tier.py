"""Whether tests may fetch and start the servers of other makers.

Rule: they run only when `LOGBERG_SERVERS` is set, as `make conformance` does: they fetch jars and
take minutes. Otherwise, and where a tool is missing, they say "not run" and why.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from benchmarks.peers.tools import NoToolError
from tests.coordination.servers.server_group import ServerGroup

G = TypeVar("G", bound=ServerGroup)


def not_run_reason() -> str | None:
    """Why such tests don't run here; None: they do."""
    if os.environ.get("LOGBERG_SERVERS"):
        return None
    return "not run: servers of other makers are fetched only with LOGBERG_SERVERS=1"


def skip_unless_run() -> None:
    """Skip the test, with the reason, unless such tests run here."""
    if (reason := not_run_reason()) is not None:
        pytest.skip(reason)


@contextmanager
def serving(make: Callable[[], G]) -> Iterator[G]:
    """Start servers for tests, and stop them at the end; where they can't run, skip the tests.

    `make` configures the servers. It may raise NoToolError.
    """
    skip_unless_run()
    try:
        servers = make()
    except NoToolError as error:
        pytest.skip(f"not run: {error}")
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()
