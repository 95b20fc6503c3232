"""The states of a log at offsets, by replay; equal logs are replayed once.

Rule: a log is known by its cluster, its end and its chain hash there. That hash holds every byte of
every batch, and each replica's own frames are verified before its log is called equal to another.
"""

from collections.abc import Callable
from typing import NamedTuple

from audit.reading.replay import Fold
from ledger.chain import LogMark
from ledger.reader import LedgerReader
from ledger.verify import VerifyReport
from metadata.image.metadata_image import hash_from_scratch


class ReplayedState(NamedTuple):
    """What a log replays to, up to an offset."""

    mark: LogMark
    """Where the last batch before the offset ends."""
    in_transaction: bool
    state_hash: bytes
    """64 bytes."""


class KnownReplays:
    """What the replays of sound logs gave, for other replicas of the same log."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, int, bytes], dict[int, ReplayedState]] = {}

    def of(self, report: VerifyReport) -> dict[int, ReplayedState]:
        """Return the known states of a log by offset. A replay adds to them.

        A log that is damaged or doesn't begin at offset 0 shares its states with none.
        """
        if report.first_bad is not None or report.log_start:
            return {}
        return self._states.setdefault((report.cluster_id, report.log_end, report.head), {})


class LogReplay:
    """Replays a log as far as it is asked, if the state there is not known."""

    def __init__(
        self,
        reader: LedgerReader,
        fold: Fold,
        known: dict[int, ReplayedState],
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        """`fold`: where replay begins. `known`: states by offset, which are added to."""
        self._reader = reader
        self._fold = fold
        self._known = known
        self._on_progress = on_progress

    @property
    def reached(self) -> int:
        """The end of the last batch that was replayed."""
        return self._fold.mark.log_end

    def at(self, offset: int) -> ReplayedState:
        """Return the state of the batches that begin before an offset. Offsets must not fall.

        Raises LedgerError if a batch can't be replayed.
        """
        found = self._known.get(offset)
        if found is None:
            fold = self._fold
            for reached in fold.take_all(self._reader.batches(fold.mark.log_end, offset)):
                if self._on_progress is not None:
                    self._on_progress(reached, self._reader.log_end)
            image = fold.image
            state_hash = hash_from_scratch(image).encode()
            found = ReplayedState(fold.mark, image.transaction is not None, state_hash)
            self._known[offset] = found
        return found
