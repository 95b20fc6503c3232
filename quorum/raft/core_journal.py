"""The journal under the names by which PySyncObj calls it."""

from pysyncobj.journal import Journal

from quorum.journal import Entry, RaftJournal, VotedFor


class CoreJournal(Journal):  # type: ignore[misc]
    """Passes each call on. The core counts places in the list, not indexes of entries."""

    def __init__(self, journal: RaftJournal) -> None:
        self._journal = journal
        # The core calls these most often.
        self.add = journal.add
        self.clear = journal.clear

    def deleteEntriesFrom(self, entryFrom: int) -> None:  # noqa: N802, N803 - the core's name
        self._journal.delete_from(entryFrom)

    def deleteEntriesTo(self, entryTo: int) -> None:  # noqa: N802, N803
        self._journal.delete_before(entryTo)

    def __getitem__(self, item: int | slice) -> Entry | list[Entry]:
        return self._journal[item]

    def __len__(self) -> int:
        return len(self._journal)

    def setRaftCommitIndex(self, raftCommitIndex: int) -> None:  # noqa: N802, N803
        self._journal.set_commit_index(raftCommitIndex)

    def getRaftCommitIndex(self) -> int:  # noqa: N802
        return self._journal.commit_index

    def setCurrentTerm(self, term: int, votedForNodeId: VotedFor) -> None:  # noqa: N802, N803
        self._journal.set_term(term, votedForNodeId)

    def getCurrentTerm(self) -> int:  # noqa: N802
        return self._journal.term

    def getVotedForNodeId(self) -> VotedFor:  # noqa: N802
        return self._journal.voted_for

    def onOneSecondTimer(self) -> None:  # noqa: N802
        self._journal.on_second()

    def _destroy(self) -> None:
        """Do nothing: the node closes its journal itself, so that it hears of an error."""
