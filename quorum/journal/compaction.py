"""Chooses the entries that the journal may forget, once the owner has made them durable above.

Rule: the journal is cut at the newest of the owner's marks that leaves `tail_bytes` behind it, for
followers that lag. The manifest describes the first two entries that remain, and it is durable
before the core deletes anything.
"""

from collections import deque
from collections.abc import Callable

from quorum.api import Mark, Voter
from quorum.journal.journal import RaftJournal
from quorum.journal.log_view import LogView
from quorum.journal.manifest import JournalManifest
from quorum.journal.manifest_store import ManifestStore


class Compaction:
    """The marks at which the journal may be cut."""

    def __init__(
        self,
        journal: RaftJournal,
        view: LogView,
        manifests: ManifestStore,
        *,
        cluster_id: str,
        tail_bytes: int,
        voters: Callable[[int], tuple[tuple[Voter, ...], bool]],
        wake: Callable[[], None],
    ) -> None:
        """`voters`: those in force at an index, and whether an entry named them."""
        self._journal = journal
        self._view = view
        self._manifests = manifests
        self._cluster_id = cluster_id
        self._tail_bytes = tail_bytes
        self._voters = voters
        self._wake = wake
        self._marks: deque[Mark] = deque()

    def add(self, mark: Mark, on_done: Callable[[bool], None]) -> None:
        """Note a mark, and cut at the newest mark that leaves a tail.

        Calls back True once the manifest is durable, or at once if nothing is cut now. Calls back
        False if the mark is not newer than the last, or not an entry of this log.
        """
        view = self._view
        known = mark.index > view.first and view.term_at(mark.index) == mark.epoch
        if not known or (self._marks and self._marks[-1].index >= mark.index):
            on_done(False)
            return
        self._marks.append(mark)
        self._cut(on_done)

    def _cut(self, on_done: Callable[[bool], None]) -> None:
        chosen = self._choose()
        if chosen is None:
            on_done(True)
            return
        journal = self._journal
        first, second = journal.entry(chosen.index - 1), journal.entry(chosen.index)
        assert first is not None
        assert second is not None
        voters, named = self._voters(chosen.index)
        manifest = JournalManifest(
            cluster_id=self._cluster_id,
            first=first,
            second=second,
            mark_data=chosen.data,
            voters=voters,
            directory_id=journal.directory_id,
            journal_position=journal.durable_position,
            named=named,
        )

        def written(is_ours: bool) -> None:
            self._wake()
            on_done(is_ours)

        self._manifests.offer(manifest, written)

    def _choose(self) -> Mark | None:
        """Remove the marks with a full tail behind them, and return the newest of these."""
        if self._manifests.writing:
            return None
        chosen = None
        while self._marks:
            index = self._marks[0].index
            if self._journal.bytes_after(index) < self._tail_bytes:
                break
            mark = self._marks.popleft()
            if index > self._view.first + 1:
                chosen = mark
        return chosen
