"""Pulls history for a catch-up, up to a mark that ordinary entries can't reach any more.

Rule: nothing in the ledger changes until the manifest names the mark (see `incoming`). The segments
are chained forward from the first one, and the last must end in the mark's hash. The quorum vouches
for that hash, so it proves every byte before the mark.
"""

from collections.abc import Callable, Generator, Sequence

from ledger.chain import LogMark
from ledger.checker import BadSegmentError
from ledger.errors import LedgerError
from ledger.incoming import NOTE_NAME, CatchUpNote
from ledger.pull import INCOMING_FOLDER, SegmentPull, part_name
from ledger.segments import LOG_FOLDER, segment_name
from runtime.disk.interface import Disk


class HistoryPull:
    """Pulls segments one after another, up to `mark`.

    `peer_bases`: the base offsets that the peer has (`segments.segment_bases`). `log_end`: this
    node's own. From its segment on no offset is skipped, and its good bytes are not fetched again.
    `start_at`: skip history before this offset because a checkpoint covers it; backfill fetches it
    later.

    Run `prepare` in slices. While `wanted` names a file and a position, pass the peer's answer to
    `add`. When `add` returns True, run `prepare` for the next segment. At the end call `seal`.
    """

    def __init__(
        self,
        disk: Disk,
        cluster_id: str,
        mark: LogMark,
        peer_bases: Sequence[int],
        *,
        log_end: int,
        start_at: int | None = None,
    ) -> None:
        start = log_end if start_at is None else max(start_at, log_end)
        below = [base for base in peer_bases if base < mark.log_end]
        first = [base for base in below if base <= start]
        if not first:
            raise LedgerError(f"the peer's history begins after offset {start}")
        self._disk = disk
        self._cluster_id = cluster_id
        self._target = mark
        self._history_end = log_end
        self._bases = [base for base in below if base >= first[-1]]
        self._ends = [*self._bases[1:], mark.log_end]
        self._current = 0
        self._pull: SegmentPull | None = None
        self._mark: LogMark | None = None
        self._error: OSError | None = None

    @property
    def first_base(self) -> int:
        """The first offset of the pulled history."""
        return self._bases[0]

    @property
    def fetched_to(self) -> int:
        """Everything before this offset is here."""
        if self._pull is not None:
            return self._pull.mark.log_end
        return self._mark.log_end if self._mark is not None else self.first_base

    @property
    def complete(self) -> bool:
        """Everything up to the mark is here and verified."""
        return self._current == len(self._bases)

    def prepare(self) -> Generator[None, None, None]:
        """Begin the current segment with the bytes that are here already."""
        self._drop_stale_note()
        while not self.complete:
            base, end = self._bases[self._current], self._ends[self._current]
            end_hash = self._target.head if end == self._target.log_end else None
            pull = SegmentPull(
                self._disk, self._cluster_id, base, end, end_hash, previous=self._mark
            )
            self._pull = pull
            own = f"{LOG_FOLDER}/{segment_name(base)}" if base < self._history_end else None
            yield from pull.prepare(own)
            if not pull.complete:
                return
            self._keep(pull)

    @property
    def wanted(self) -> tuple[str, int] | None:
        """The peer's file (without folder) and the position to read next; None if complete."""
        return None if self._pull is None else (self._pull.name, self._pull.position)

    def add(self, data: bytes) -> bool:
        """Take the peer's bytes; return True if that segment is done.

        Raises BadSegmentError, UnknownFormatError: call `discard` and use another peer.
        """
        pull = self._pull
        if pull is None:
            raise LedgerError("nothing is wanted")
        pull.add(data)
        if not pull.complete:
            return False
        self._keep(pull)
        return True

    def _keep(self, pull: SegmentPull) -> None:
        if self._current == len(self._bases) - 1 and pull.mark != self._target:
            raise BadSegmentError(
                pull.position, pull.mark.log_end, "the history does not end in the mark"
            )
        self._mark = pull.mark
        self._current += 1
        self._pull = None
        pull.keep(self._kept)

    def _kept(self, error: OSError | None) -> None:
        self._error = self._error or error

    def _drop_stale_note(self) -> None:
        if self._disk.exists(NOTE_NAME):
            self._disk.unlink(NOTE_NAME)
            self._disk.sync_folder(INCOMING_FOLDER)

    def discard(self) -> None:
        """Remove everything that was pulled. One part is wrong, so any part may be."""
        self.close()
        for base in self._bases:
            if self._disk.exists(part_name(base)):
                self._disk.unlink(part_name(base))
        self._current, self._mark = 0, None

    def seal(self, on_done: Callable[[OSError | None], None]) -> None:
        """Write the note that everything is ready, durably.

        Then the quorum may rename the manifest.

        Afterwards open the ledger again at the mark. Opening moves the segments into place.
        """
        if not self.complete:
            raise LedgerError("the pull is not complete")
        data = CatchUpNote(self._target, tuple(self._bases), self._history_end).encode()

        def work() -> None:  # runs after the syncs of all segments
            if self._error is not None:
                raise self._error
            self._disk.sync_folder(INCOMING_FOLDER)
            self._disk.replace(NOTE_NAME, data)

        self._disk.in_background(work, lambda _result, error: on_done(error))

    def close(self) -> None:
        """Stop. The fetched bytes stay for the next `prepare`."""
        if self._pull is not None:
            self._pull.close()
            self._pull = None
