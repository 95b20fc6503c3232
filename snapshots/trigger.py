"""When to write the next checkpoint: after so many bytes of log, or so much time.

Rule: no log since the last one, no checkpoint. Time is the process's own.
"""

from runtime.clock import Clock

EVERY_BYTES = 64 * 1024 * 1024
EVERY_S = 3600.0


class CheckpointTrigger:
    """Counts what was accepted since the last checkpoint."""

    def __init__(
        self, clock: Clock, every_bytes: int = EVERY_BYTES, every_s: float = EVERY_S
    ) -> None:
        self._clock = clock
        self._every_bytes = every_bytes
        self._every_s = every_s
        self._bytes = 0
        self._since = clock.monotonic()

    def accepted(self, size: int) -> None:
        """Count the bytes of a batch."""
        self._bytes += size

    @property
    def due(self) -> bool:
        """It is time for one."""
        if not self._bytes:
            return False
        late = self._clock.monotonic() - self._since >= self._every_s
        return late or self._bytes >= self._every_bytes

    def begun(self) -> None:
        """One was begun, with everything that was counted so far."""
        self._bytes = 0
        self._since = self._clock.monotonic()

    def failed(self, size: int) -> None:
        """The one begun did not come to be: its bytes count again, after another period."""
        self._bytes += size
        self._since = self._clock.monotonic()
