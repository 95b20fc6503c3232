"""Decides when to write the next checkpoint: after so many bytes of log, or after some time.

Rule: without new log there is no new checkpoint. Time is measured by this process's clock.
"""

from runtime.clock import Clock

EVERY_BYTES = 64 * 1024 * 1024
EVERY_S = 3600.0


class CheckpointTrigger:
    """Counts the bytes that were accepted since the last checkpoint."""

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
        """It is time to write a checkpoint."""
        if not self._bytes:
            return False
        late = self._clock.monotonic() - self._since >= self._every_s
        return late or self._bytes >= self._every_bytes

    def begun(self) -> None:
        """Begin to count anew: a checkpoint was begun that covers everything so far."""
        self._bytes = 0
        self._since = self._clock.monotonic()

    def failed(self, size: int) -> None:
        """The checkpoint failed.

        Its bytes count again; the next one is due after another period.
        """
        self._bytes += size
        self._since = self._clock.monotonic()
