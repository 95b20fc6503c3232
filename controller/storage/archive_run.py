"""A pass of the archiving that somebody asked for, and what has come of it so far."""

from collections.abc import Callable


class ArchiveRun:
    """Counted from the process's start. Whoever asks while it goes on waits for the same one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.segments = 0
        """Segments that were removed here in it."""
        self.bytes = 0
        self.note = ""
        """Why no more leaves, once the run has ended well."""
        self.failed = ""
        """Why it could not go on."""
        self.ended = False
        self._calls: list[Callable[[], None]] = []

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call once, when the run has ended."""
        if self.ended:
            call()
        else:
            self._calls.append(call)

    def removed(self, size: int) -> None:
        """Count a segment that was removed here."""
        self.segments += 1
        self.bytes += size

    def end(self, note: str = "", failed: str = "") -> None:
        """End it."""
        self.note, self.failed, self.ended = note, failed, True
        calls, self._calls = self._calls, []
        for call in calls:
            call()
