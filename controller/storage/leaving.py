"""Decides which segment may move from this node to the archive next, or says why none may.

Rule: a segment stays when the node may need it by itself: when it reaches behind the journal's
mark, or behind the oldest of the checkpoints that a start may load, or when fewer than two
checkpoints are there. It also stays when the configuration says so. The newest segment is never
closed, so it never leaves.
"""

from typing import Final, NamedTuple

from controller.config import ControllerConfig
from ledger.archived_history import ArchivedHistory
from ledger.catalogue import Segment
from ledger.chain import LogMark
from ledger.ledger import Ledger
from quorum.api import Quorum
from runtime.clock import Clock
from snapshots.store import KEEP_NEWEST, CheckpointStore

_CHECKPOINTS_LEAST: Final = 2


class LeavingSegment(NamedTuple):
    """The oldest segment here, which may leave."""

    ledger: Ledger
    segment: Segment
    end: LogMark | None
    """Where it ends. None: it lies below a gap, and the archive holds all that is below the run."""


class Leaving:
    """Looks at one node's ledger, checkpoints and journal."""

    def __init__(
        self, config: ControllerConfig, clock: Clock, quorum: Quorum, archived: ArchivedHistory
    ) -> None:
        self._config = config
        self._clock = clock
        self._quorum = quorum
        self._archived = archived

    def next(self, ledger: Ledger | None, store: CheckpointStore | None) -> LeavingSegment | str:
        """Return the oldest segment here if it may leave, else a sentence that says why not."""
        if ledger is None or store is None or ledger.failed is not None:
            return "this controller's ledger can't be used now"
        catalogue = ledger.catalogue
        run = catalogue.run
        if len(run) < 2:
            return "all closed segments have moved; the newest one is still being written"
        if catalogue.gap is not None:
            if self._archived.start(run[0].header.previous).log_end:
                return "this node still fetches older history that it lacks"
            oldest = catalogue.segments[0]
            if oldest.base_offset < run[0].base_offset:
                return LeavingSegment(ledger, oldest, None)
            return "this node's history is being put in order"
        end = run[1].header.previous
        why = self._needed(store, end) or self._kept(ledger, run[0], end)
        return why or LeavingSegment(ledger, run[0], end)

    def _needed(self, store: CheckpointStore, end: LogMark) -> str:
        """Say why this node needs a segment by itself; empty: it doesn't."""
        mark = self._quorum.resumes_at()
        newest = store.list()[-KEEP_NEWEST:]
        if mark is None or len(newest) < _CHECKPOINTS_LEAST:
            return (
                f"the log stays until there are {_CHECKPOINTS_LEAST} checkpoints of it and the "
                "journal was cut; a start would need it"
            )
        # The segment that ends at the journal's mark stays: a start looks at its last batch.
        needed_from = min(newest[0].offset, LogMark.decode(mark.data).log_end - 1)
        if end.log_end > needed_from:
            return f"a start of this controller would need the log from offset {needed_from} on"
        return ""

    def _kept(self, ledger: Ledger, segment: Segment, end: LogMark) -> str:
        """Say which setting keeps a segment here; empty: none does."""
        config = self._config
        stays = ledger.size_bytes() - ledger.segment_size(segment.base_offset)
        if stays < config.archive_keep_bytes:
            return (
                f"archive.keep_bytes is {config.archive_keep_bytes}: so many bytes of the log stay "
                f"here, and it has {ledger.size_bytes()}"
            )
        age_s = (self._clock.wall_ms() - end.timestamp_ms) / 1000
        if age_s < config.archive_keep_s:
            keep_ms = round(config.archive_keep_s * 1000)
            return (
                f"archive.keep_ms is {keep_ms}: younger segments stay here, and the oldest one's "
                f"newest record is {max(0, round(age_s * 1000))} ms old"
            )
        return ""
