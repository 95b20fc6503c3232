"""The faults of a simulated disk, and how long its operations take.

Rule: a test switches a fault on, and the fault happens at a numbered step. So a test can try every
step of an operation: kill the process at the n-th, fail the n-th.
"""

import errno
import os
from collections.abc import Callable
from random import Random
from typing import NamedTuple

UNLIMITED_BYTES = 1 << 50


class DiskProfile(NamedTuple):
    """How long a sync or a piece of background work takes, in microseconds."""

    low_us: int
    high_us: int
    tail: float = 0.0
    """The share of operations that take ten times as long."""
    stuck: bool = False
    """Nothing completes until the profile changes."""

    def draw_us(self, random: Random) -> int | None:
        """Return microseconds; None while stuck."""
        if self.stuck:
            return None
        delay = self.low_us + int(random.random() * (self.high_us - self.low_us))
        if self.tail and random.random() < self.tail:
            return delay * 10
        return delay


FAST = DiskProfile(100, 1_000, tail=0.01)
SLOW = DiskProfile(10_000, 500_000)
STUCK = DiskProfile(0, 0, stuck=True)


class DiskFaults:
    """The faults of one node's disk. They outlive its processes."""

    def __init__(self) -> None:
        self.profile = FAST
        self.capacity_bytes: int | None = None
        """The size of the disk; None: unlimited."""
        self.steps = 0
        """The number of changes so far: writes, cuts, syncs, creations, renames, unlinks."""
        self.holder: object | None = None
        """The disk object whose process has locked the folder."""
        self._kill_at: int | None = None
        self._torn: float = 0.0
        self._failing: dict[str, tuple[int, int, bool]] = {}
        self._on_profile: list[Callable[[], None]] = []

    def set_profile(self, profile: DiskProfile) -> None:
        """Be fast, slow or stuck from now on. Work that waits on a stuck disk continues."""
        self.profile = profile
        for callback in list(self._on_profile):
            callback()

    def on_profile(self, callback: Callable[[], None]) -> None:
        """Call back when the profile changes."""
        self._on_profile.append(callback)

    def drop_on_profile(self, callback: Callable[[], None]) -> None:
        """Don't call back any more."""
        if callback in self._on_profile:
            self._on_profile.remove(callback)

    def kill_at(self, steps_from_now: int, torn: float = 0.0) -> None:
        """Kill the process before its next step (0), the one after (1), ...

        If that step is a write, a part of its bytes is written: `torn`, from 0 to 1.
        """
        self._kill_at = self.steps + steps_from_now
        self._torn = torn

    def spare(self) -> None:
        """Undo a `kill_at` that has not happened yet."""
        self._kill_at = None

    def fail(
        self, operation: str, skip: int = 0, error: int = errno.EIO, *, lasting: bool = False
    ) -> None:
        """Let an operation fail, after `skip` more that succeed: once, or always if `lasting`.

        Operations: read, write, sync, create, rename, unlink, sync_folder.
        """
        self._failing[operation] = (skip, error, lasting)

    def succeed(self) -> None:
        """Undo every `fail`."""
        self._failing.clear()

    def heal(self) -> None:
        """End every fault."""
        self.capacity_bytes = None
        self._kill_at = None
        self.succeed()
        self.set_profile(FAST)

    def free_bytes(self, used_bytes: int) -> int:
        """Return how many bytes are free."""
        if self.capacity_bytes is None:
            return UNLIMITED_BYTES
        return max(self.capacity_bytes - used_bytes, 0)

    def torn_at_this_step(self, size: int) -> int | None:
        """Return how many bytes are written before the kill at this step; None: no kill."""
        return int(size * self._torn) if self._kill_at == self.steps else None

    def dies_at_this_step(self) -> bool:
        """Count a step; tell whether the process is killed instead."""
        dies = self._kill_at == self.steps
        self.steps += 1
        if dies:
            self._kill_at = None
        return dies

    def check(self, operation: str) -> None:
        """Raise the OSError that `fail` asked for, if it is due for this operation."""
        failing = self._failing.get(operation)
        if failing is None:
            return
        skip, error, lasting = failing
        if skip:
            self._failing[operation] = (skip - 1, error, lasting)
            return
        if not lasting:
            del self._failing[operation]
        failure = OSError(error, f"{os.strerror(error)} (simulated)")
        failure.add_note(operation)
        raise failure
