"""Writes the frames that somebody waits for, and says up to where.

Rule: nobody waits for a frame that is appended past this module, such as a commit index or a note.
"""

from quorum.journal.frames import JournalFrameKind
from quorum.journal.identity import FOLDER
from quorum.journal.segments import SegmentWriter
from quorum.journal.state import JournalState
from runtime.disk.errors import explain


class AwaitedFrames:
    """The positions that an entry, a vote or an acknowledgement rests on."""

    def __init__(self, writer: SegmentWriter, state: JournalState, position: int) -> None:
        self._writer = writer
        self._state = state
        self.needing_sync = position
        """The position behind the last frame that anyone waits for."""
        self.of_vote = position
        """The position behind the last frame that a vote or a term rests on."""

    @property
    def written_position(self) -> int:
        """The position behind the last frame of any kind."""
        return self._writer.written_position

    @property
    def durable_position(self) -> int:
        """Every frame that ends at or before it survives a loss of power."""
        return self._writer.durable_position

    def write(self, kind: JournalFrameKind, body: bytes) -> int:
        """Write a frame; return the position behind it."""
        self.needing_sync = self._writer.append(kind, body)
        return self.needing_sync

    def promise(self, kind: JournalFrameKind, body: bytes) -> None:
        """Write a frame that votes and acknowledgements rest on."""
        self.of_vote = self.write(kind, body)

    def promise_state(self) -> None:
        """Write the whole state."""
        self.promise(JournalFrameKind.STATE, self._state.encode(self._state.last_index))

    def promise_now(self) -> None:
        """Make the state durable; blocks, for start-up. Raises OSError."""
        self.promise_state()
        try:
            self._writer.sync_blocking()
        except OSError as error:
            raise explain(error, f"writing {FOLDER}/") from error
        if self._writer.failure is not None:
            raise self._writer.failure
