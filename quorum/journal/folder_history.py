"""What happened to a folder: its incarnations, its damage and repairs, what its peers told.

Rule: the node's vote counts only after this process's incarnation, and after each repair only
after the repair, is durable (`lineage` says why).
"""

import msgspec
from structlog.typing import FilteringBoundLogger

from quorum.journal.awaited_frames import AwaitedFrames
from quorum.journal.frames import JournalFrameKind
from quorum.journal.lineage import Lineage
from quorum.journal.segments import SegmentWriter
from quorum.journal.state import JournalState, Known, known_items


class FolderHistory:
    """The history of one folder, as its journal holds it."""

    def __init__(
        self, state: JournalState, frames: AwaitedFrames, log: FilteringBoundLogger
    ) -> None:
        self._state = state
        self._frames = frames
        self._log = log
        self._known_written = dict(state.known)
        self._repair_to_note = 0

    @property
    def lineage(self) -> Lineage:
        """The incarnations of this folder."""
        return self._state.lineage

    def begin_incarnation(self, drawn: bytes) -> None:
        """Begin this process's incarnation; its promises wait until that is durable."""
        self._begin(JournalFrameKind.INCARNATION, self._state.lineage.named(drawn))

    def _begin(self, kind: JournalFrameKind, incarnation: bytes) -> None:
        # Before the frame: it may fill a segment, and the next one begins with the state after it.
        self._state.lineage.begin(incarnation, self._frames.written_position)
        self._frames.promise(kind, incarnation)

    # -- damage ------------------------------------------------------------------------------

    def repaired(self, drawn: bytes) -> None:
        """End the damage: the node has caught up with a leader elected without it.

        Durable with the next sync; a vote given before that waits for it. A new incarnation begins
        here, with `drawn` as the random part of its id, `lineage.DRAWN_BYTES` long.
        """
        if self._state.damage:
            self._state.damage = ""
            self._begin(JournalFrameKind.REPAIRED, self._state.lineage.named_after_repair(drawn))
            self._repair_to_note = self._frames.of_vote

    @property
    def repair_is_noted(self) -> bool:
        """Whether a durable frame says that the last repair is durable (see `opening`).

        Until then no peer hears of the repair.
        """
        return not self._repair_to_note

    def note_repair(self) -> None:
        """Write the frame whose header says that the last repair is durable, once it is."""
        if 0 < self._repair_to_note <= self._frames.durable_position:
            self._repair_to_note = 0
            self._frames.promise(JournalFrameKind.NOTE, b"")

    def lost(self, incarnation: bytes, position: int, what: str) -> None:
        """Note that what an incarnation of ours made durable is lost; the damage says `what`."""
        self._state.lineage.note_lost(incarnation, position)
        self._state.damage = self._state.damage or what
        self._frames.promise_state()
        self._log.error("journal_damaged", what=what)

    # -- peers -------------------------------------------------------------------------------

    @property
    def known(self) -> dict[bytes, Known]:
        """What each voter last told of itself, by its directory id."""
        return self._state.known

    def remember(self, directory_id: bytes, known: Known) -> None:
        """Remember what a voter tells of itself. A new incarnation is written down at once."""
        before = self._state.known.get(directory_id)
        self._state.known[directory_id] = known
        if before is None or before.incarnation != known.incarnation:
            self._frames.write(JournalFrameKind.KNOWN, self._encoded_known())

    def write_known(self, writer: SegmentWriter) -> None:
        """Write down what is known of the peers, if it changed; nobody waits for it."""
        if self._state.known != self._known_written:
            writer.append(JournalFrameKind.KNOWN, self._encoded_known())

    def _encoded_known(self) -> bytes:
        self._known_written = dict(self._state.known)
        return msgspec.msgpack.encode(known_items(self._known_written))
