"""Replaces what PySyncObj takes from the outside: clock, dice, journal, dump, codec, poller.

Rule: PySyncObj finds these as globals of one module. We replace them once for the process, by
stand-ins that ask the *current* node. Whoever calls into the core calls `enter` first, so many
nodes on different clocks can share a process, as in the simulator.

Left alone, the library would open and unpickle files, read the machine's clock and draw from the
global random generator. None of that is safe or repeatable.
"""

from types import CodeType
from typing import Protocol

import pysyncobj.syncobj as core_module
from pysyncobj.version import VERSION

from quorum.journal import RaftJournal
from quorum.raft.core_dump import CoreDump, replaced_os
from quorum.raft.core_journal import CoreJournal
from quorum.raft.dicts import WORDS
from quorum.wire import codec

CORE_VERSION = "0.3.17"


class WrongCoreError(Exception):
    """The installed PySyncObj is not the release that the guard was written for."""


class CoreWorld(Protocol):
    """What one node gives its core."""

    @property
    def journal(self) -> RaftJournal:
        """The journal that the core writes to."""

    def monotonic(self) -> float:
        """Seconds, above zero."""

    def dice(self) -> float:
        """From 0 to below 1."""


class _Current:
    """The node whose core runs now, and the stand-ins that ask it."""

    def __init__(self) -> None:
        self.world: CoreWorld | None = None
        self.now = 0.0
        """The time at which the core was entered; it asks for it up to ten times in a tick."""

    def context(self) -> CoreWorld:
        assert self.world is not None, "the core was entered without `enter`"
        return self.world

    def monotonic_time(self) -> float:
        return self.now

    def random(self) -> float:
        return self.context().dice()

    def create_journal(self, _name: str | None) -> CoreJournal:
        return CoreJournal(self.context().journal)


class _NullPoller:
    """The core has no descriptors to poll."""

    def poll(self, _timeout: float) -> None:
        """Return at once."""


_current = _Current()


def enter(world: CoreWorld) -> None:
    """Say which node's core is called next. For the core no time passes until it is left."""
    _current.world = world
    _current.now = world.monotonic()


def words_of(container: type) -> set[str]:
    """Return every string constant in the methods of a class."""
    words: set[str] = set()
    waiting = [item.__code__ for item in vars(container).values() if hasattr(item, "__code__")]
    while waiting:
        for constant in waiting.pop().co_consts:
            if isinstance(constant, str):
                words.add(constant)
            elif isinstance(constant, CodeType):
                waiting.append(constant)
    return words


def check_core() -> None:
    """Raise WrongCoreError unless the library is the release that this package was tested with."""
    if VERSION != CORE_VERSION:
        raise WrongCoreError(
            f"PySyncObj {VERSION} is installed, Logberg is proved with {CORE_VERSION} only: "
            f"install pysyncobj=={CORE_VERSION}"
        )
    if not hasattr(core_module.SyncObj, "_SyncObj__updateClusterConfiguration"):
        raise WrongCoreError(
            "this PySyncObj can't replace the nodes that it counts: install "
            f"pysyncobj=={CORE_VERSION}"
        )
    missing = WORDS - words_of(core_module.SyncObj)
    if missing:
        raise WrongCoreError(
            f"this PySyncObj lacks the message words {', '.join(sorted(missing))}: install "
            f"pysyncobj=={CORE_VERSION}"
        )


def install() -> None:
    """Replace the globals. Calling it again is harmless."""
    check_core()
    core_module.monotonicTime = _current.monotonic_time
    core_module.random = _current
    core_module.os = replaced_os
    core_module.createJournal = _current.create_journal
    core_module.Serializer = CoreDump
    core_module.pickle = codec
    core_module.createPoller = lambda _kind: _NullPoller()
    core_module.PIPE_NOTIFIER_ENABLED = False
