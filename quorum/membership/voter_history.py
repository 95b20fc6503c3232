"""Who votes, at each index of this node's log.

Rule: the voters in force are those that the newest entry with voters names, whether it is committed
or not; without such an entry they are the base. So what is cut from the log is undone. The history
follows from formation, manifest and journal alone, and is written nowhere else (ADR 0081).

The base is the formation, or the voters of the manifest where the journal begins with one. A node
that does not know the formation yet knows no voters, even if it has a manifest.

Example: a log names {1, 2, 3} at its formation and {1, 2, 3, 4} at entry 70. At 69 three nodes
vote, from 70 on four. If a later leader cuts entry 70, three vote again.
"""

from typing import NamedTuple

from quorum.api import Voter
from quorum.config import QuorumConfig
from quorum.journal import DamagedError, RaftJournal
from quorum.journal.manifest import JournalManifest
from quorum.membership.formation import Formation, Pinned
from quorum.membership.voters_entry import voters_of
from quorum.wire.codec import BadBytesError


class VotersAt(NamedTuple):
    """A set of voters, and the index from which on it is in force."""

    index: int  # type: ignore[assignment]
    voters: tuple[Voter, ...]
    named: bool = True
    """Whether an entry names them, so that their addresses are what the log says."""

    @property
    def members(self) -> Pinned:
        """Directory id by node id."""
        return {voter.node_id: voter.directory_id for voter in self.voters}


class VoterHistory:
    """The sets of voters of one node's log. Also its journal's `EntryWatcher`."""

    def __init__(
        self,
        config: QuorumConfig,
        journal: RaftJournal,
        formation: Formation,
        manifest: JournalManifest | None,
    ) -> None:
        self._me = (config.node_id, journal.directory_id)
        self._formation = formation
        self._base = VotersAt(0, (), named=False)
        if manifest is not None and manifest.voters:
            self._base = VotersAt(manifest.mark.index, manifest.voters, manifest.named)
        self._next_base: VotersAt | None = None
        self._changes: list[VotersAt] = []
        self.members: Pinned = {}
        """The voters in force: directory id by node id. Empty while they are not known."""
        self.changed = False
        """Others are in force than the guard has heard of (`quorum.guard.voter_changes`)."""
        self.have_changed = False
        """Whether an entry names voters, or the manifest names others than the formation."""
        for command, index, _ in journal[:]:
            self._read(command, index)
        self._refresh()
        self.changed = False
        journal.watch(self)

    def _read(self, command: bytes, index: int) -> None:
        try:
            voters = voters_of(command)
        except BadBytesError as error:
            raise DamagedError(
                f"entry {index} of the journal names voters that can't be read ({error}): give the "
                "node an empty folder and add it as a new voter"
            ) from error
        if voters is not None and index > self._base.index:
            self._changes.append(VotersAt(index, voters))

    def _refresh(self) -> None:
        members = self.newest.members if self._formation.known else {}
        self.have_changed = bool(self._changes) or (
            bool(self._base.voters and members)
            and (self._base.named or members != self._formation.pinned)
        )
        if members != self.members:
            self.members = members
            self.changed = True

    def formed(self) -> None:
        """The formation is known now."""
        self._refresh()
        self.changed = False

    # -- who votes ---------------------------------------------------------------------------

    @property
    def newest(self) -> VotersAt:
        """The voters in force, and since which index."""
        return self._changes[-1] if self._changes else self._bottom

    @property
    def _bottom(self) -> VotersAt:
        """The base: the manifest's voters, or the formation."""
        if self._base.voters:
            return self._base
        pinned = sorted(self._formation.pinned.items())
        return VotersAt(0, tuple(Voter(*item, host="", port=0) for item in pinned), named=False)

    @property
    def known(self) -> bool:
        """Whether the voters are known."""
        return bool(self.members)

    @property
    def we_vote(self) -> bool:
        """Whether this node and its directory are among the voters."""
        return self.votes(*self._me)

    def votes(self, node_id: int, directory_id: bytes) -> bool:
        """Tell whether a directory under a node id is a voter."""
        return self.members.get(node_id) == directory_id

    def majority(self) -> int:
        """Return the size of a majority of the voters."""
        return len(self.members) // 2 + 1

    def at(self, index: int) -> VotersAt:
        """Return the voters in force at an index."""
        for change in reversed(self._changes):
            if change.index <= index:
                return change
        return self._bottom

    def newest_is_committed(self, commit_index: int) -> bool:
        """Tell whether no change is behind `commit_index`."""
        return not self._changes or self._changes[-1].index <= commit_index

    def unsettled(self, commit_index: int) -> list[VotersAt]:
        """Return every set that may be in force while no more than `commit_index` is committed."""
        later = [change for change in self._changes if change.index > commit_index]
        return [self.at(commit_index), *later]

    def is_leaving(self, node_id: int, directory_id: bytes, commit_index: int) -> bool:
        """Tell whether a node's removal is in the log and not known to be committed."""
        if not self._changes or self.votes(node_id, directory_id):
            return False
        sets = self.unsettled(commit_index)
        return any(one.members.get(node_id) == directory_id for one in sets)

    # -- the journal's entries (quorum.journal.entry_watcher) --------------------------------

    def on_added(self, command: bytes, index: int) -> None:
        before = len(self._changes)
        self._read(command, index)
        if len(self._changes) > before:
            self._refresh()

    def on_cut(self, index: int) -> None:
        if self._next_base is not None and index == 0:
            self._base, self._next_base = self._next_base, None
        if self._changes and self._changes[-1].index >= index:
            self._changes = [change for change in self._changes if change.index < index]
        self._refresh()

    def on_dropped(self, index: int) -> None:
        if self._changes and self._changes[0].index <= index:
            self._base = self.at(index)
            self._changes = [change for change in self._changes if change.index > index]
            self._refresh()

    def begins_next_at(self, manifest: JournalManifest) -> None:
        """The journal is about to be cleared and to begin at this manifest."""
        if manifest.voters:
            self._next_base = VotersAt(manifest.mark.index, manifest.voters, manifest.named)
