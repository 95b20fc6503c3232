"""The journal that the core writes to.

Rule: a call changes memory at once and buffers a frame for the disk. `durable_position` says which
frames would survive a loss of power. The core never waits for the disk; the guard holds back every
promise until `durable_position` has reached the position that it rests on.

Entries are the core's tuples (command, index, term), kept in memory as well as on the disk.
"""

from bisect import bisect_right
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, overload

import msgspec
from structlog.typing import FilteringBoundLogger

from quorum.journal.awaited_frames import AwaitedFrames
from quorum.journal.entry_watcher import EntryWatcher
from quorum.journal.folder_history import FolderHistory
from quorum.journal.frames import JournalFrameKind
from quorum.journal.free_space import FreeSpace
from quorum.journal.identity import FOLDER
from quorum.journal.opening import Opened, open_journal
from quorum.journal.scrub import scrub_segments
from quorum.journal.segments import SegmentWriter
from quorum.journal.state import (
    Entry,
    Vote,
    VotedFor,
    entry_body,
    index_body,
)
from runtime.disk.errors import explain
from runtime.disk.interface import Disk

if TYPE_CHECKING:
    from quorum.journal.manifest import JournalManifest

SEGMENT_BYTES = 16 * 1024 * 1024
RESERVE_BYTES = 4 * SEGMENT_BYTES


class RaftJournal:
    """Entries, term, vote, commit index and formation of one node.

    Positions count the bytes ever written, across segments and restarts. If the disk fails, the
    journal calls `on_failed` once, with an OSError whose message is a sentence. After that it
    writes nothing and nothing becomes durable; the caller stops the node.
    """

    def __init__(
        self,
        disk: Disk,
        opened: Opened,
        *,
        on_durable: Callable[[], None],
        on_failed: Callable[[OSError], None],
        log: FilteringBoundLogger,
        segment_bytes: int = SEGMENT_BYTES,
        reserve_bytes: int = RESERVE_BYTES,
    ) -> None:
        self._disk = disk
        self._log = log
        self._identity = opened.identity
        self._state = opened.state
        self.opened = opened
        """What this opening read and repaired."""
        self._commit_written = opened.state.commit_index
        self._free_space = FreeSpace(disk, reserve_bytes)
        self._writer = SegmentWriter(
            disk,
            opened.identity,
            opened.segments,
            opened.position,
            segment_bytes,
            lambda: self._state.encode(self._state.last_index),
            on_durable,
            on_failed,
        )
        self._frames = AwaitedFrames(self._writer, opened.state, opened.position)
        self._watcher: EntryWatcher | None = None
        self.history = FolderHistory(opened.state, self._frames, log)
        """The incarnations of this folder, and what is lost in it."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        *,
        cluster_id: str,
        node_id: int,
        new_directory_id: bytes,
        manifest: "JournalManifest | None",
        on_durable: Callable[[], None],
        on_failed: Callable[[OSError], None],
        log: FilteringBoundLogger,
        segment_bytes: int = SEGMENT_BYTES,
        reserve_bytes: int = RESERVE_BYTES,
        accepts_epoch: bool = False,
    ) -> "RaftJournal":
        """Read the journal, or begin one under `new_directory_id`. Blocks, for start-up.

        With a manifest, the journal begins with the manifest's two entries. Older entries are
        dropped. A journal that lacks the two begins again with exactly them: that completes a
        catch-up. Everything that was read is durable on return. Look at `damage` before voting.
        `accepts_epoch`: the operator has accepted an impossible epoch in the journal.

        Raises WrongFolderError, DamagedError, OSError.
        """
        try:
            opened = open_journal(
                disk, cluster_id, node_id, new_directory_id, manifest, accepts_epoch=accepts_epoch
            )
            journal = cls(
                disk,
                opened,
                on_durable=on_durable,
                on_failed=on_failed,
                log=log,
                segment_bytes=segment_bytes,
                reserve_bytes=reserve_bytes,
            )
        except OSError as error:
            raise explain(error, f"opening {FOLDER}/") from error
        journal._report()
        if accepts_epoch:
            journal._frames.promise_now()
        if manifest is not None:
            journal._writer.retire_below(manifest.first[1], opened.position)
        return journal

    def _report(self) -> None:
        state = self._state
        self._log.info(
            "journal_opened",
            first_index=state.first_index,
            last_index=state.last_index,
            last_epoch=state.last_epoch,
            term=state.vote.term,
            position=self.durable_position,
            reset_to_manifest=self.opened.reset,
        )
        if self.opened.torn is not None:
            self._log.warning("journal_torn_tail_cut", what=str(self.opened.torn))
        if state.damage:
            self._log.error("journal_damaged", what=state.damage)

    # -- who and how -------------------------------------------------------------------------

    @property
    def directory_id(self) -> bytes:
        """The folder's id, drawn at its first start. A wiped folder gets another."""
        return self._identity.directory_id

    @property
    def damage(self) -> str:
        """What was damaged, in a sentence: the node must not vote. Empty: nothing was.

        Stays, across restarts too, until `history.repaired` is called.
        """
        return self._state.damage

    @property
    def failure(self) -> OSError | None:
        """The error that stopped the journal."""
        return self._writer.failure

    @property
    def lack_of_room(self) -> str:
        """The lack of room on the disk, as part of a sentence; empty while there is enough.

        It is looked up every second.
        """
        return self._free_space.lack

    @property
    def size_bytes(self) -> int:
        """Bytes of frames in the segments."""
        return self._writer.size_bytes

    @property
    def segment_names(self) -> list[str]:
        """The segments, oldest first."""
        return self._writer.names

    @property
    def formation(self) -> bytes | None:
        """The voters of the first start, encoded; None before."""
        return self._state.formation

    def set_formation(self, formation: bytes) -> None:
        """Write the formation; it is durable with the next sync, and before any vote is."""
        self._state.formation = formation
        self._frames.promise(JournalFrameKind.FORMATION, formation)

    # -- entries, as the core calls --------------------------------------------------------

    def watch(self, watcher: EntryWatcher) -> None:
        """Tell `watcher` of every change of the entries from now on."""
        self._watcher = watcher

    def add(self, command: bytes, index: int, term: int) -> None:
        """Append an entry."""
        state, writer = self._state, self._writer
        writer.top_index = max(writer.top_index, index)
        entry = (command, index, term)
        state.entries.append(entry)
        state.ends.append(self._frames.write(JournalFrameKind.ENTRY, entry_body(entry)))
        if self._watcher is not None:
            self._watcher.on_added(command, index)

    def clear(self) -> None:
        """Void all entries: the core begins again from a manifest."""
        self._state.truncate(0)
        self._frames.write(JournalFrameKind.TRUNCATE_FROM, index_body(0))
        self._writer.retire_older()
        if self._watcher is not None:
            self._watcher.on_cut(0)

    def delete_from(self, place: int) -> None:
        """Void the entries from `place` in the list on."""
        if place < len(self._state.entries):
            index = self._state.entries[place][1]
            self._state.truncate(index)
            self._frames.write(JournalFrameKind.TRUNCATE_FROM, index_body(index))
            if self._watcher is not None:
                self._watcher.on_cut(index)

    def delete_before(self, place: int) -> None:
        """Forget the entries before `place` in the list. The manifest is already durable."""
        if 0 < place < len(self._state.entries):
            index = self._state.entries[place][1]
            self._state.drop_before(index)
            self._writer.append(JournalFrameKind.COMPACTION, index_body(index))
            self._writer.retire_below(index, self._state.ends[0])
            if self._watcher is not None:
                self._watcher.on_dropped(index)

    @overload
    def __getitem__(self, item: int) -> Entry: ...
    @overload
    def __getitem__(self, item: slice) -> list[Entry]: ...
    def __getitem__(self, item: int | slice) -> Entry | list[Entry]:
        return self._state.entries[item]

    def __len__(self) -> int:
        return len(self._state.entries)

    @property
    def first_index(self) -> int:
        """Index of the first entry; 0 when there is none."""
        return self._state.first_index

    @property
    def last_index(self) -> int:
        """Index of the last entry; 0 when there is none."""
        return self._state.last_index

    def entry(self, index: int) -> Entry | None:
        """Return the entry with this index, if it is here."""
        place = index - self._state.first_index
        return self._state.entries[place] if 0 <= place < len(self._state.entries) else None

    # -- term, vote, commit index ------------------------------------------------------------

    @property
    def commit_index(self) -> int:
        """The commit index as last set, at least 1 as the core expects."""
        state = self._state
        return max(1, min(state.commit_index, state.last_index))

    def set_commit_index(self, index: int) -> None:
        """Note the commit index; `on_second` writes it down."""
        self._state.commit_index = index

    @property
    def term(self) -> int:
        """The current term."""
        return self._state.vote.term

    @property
    def voted_for(self) -> VotedFor:
        """The node that this node voted for in the current term; None: none."""
        return self._state.vote.voted_for

    def set_term(self, term: int, voted_for: VotedFor) -> None:
        """Write term and vote. Hold what promises them until `position_of_vote` is durable."""
        self._state.vote = Vote(term, voted_for)
        self._frames.promise(JournalFrameKind.VOTE, msgspec.msgpack.encode([term, voted_for]))

    # -- durability --------------------------------------------------------------------------

    @property
    def written_position(self) -> int:
        """The position behind the last frame."""
        return self._writer.written_position

    @property
    def durable_position(self) -> int:
        """Every frame that ends at or before it survives a loss of power."""
        return self._writer.durable_position

    @property
    def position_needing_sync(self) -> int:
        """The position behind the last frame that anyone may wait for.

        Nobody waits for commit indexes and notes.
        """
        return self._frames.needing_sync

    @property
    def position_of_vote(self) -> int:
        """The position behind the last frame that a vote or a term rests on."""
        return self._frames.of_vote

    def position_of_entry(self, index: int) -> int:
        """Return the position behind an entry's frame; 0 for those before the first.

        Raises IndexError behind the last.
        """
        state = self._state
        place = index - state.first_index
        if place < 0 or not state.entries:
            return 0
        return state.ends[place]

    def bytes_after(self, index: int) -> int:
        """Return the bytes of journal behind an entry: what a compaction there would keep."""
        place = index - self._state.first_index
        if place >= len(self._state.ends):
            return 0
        return self.written_position - (self._state.ends[place] if place >= 0 else 0)

    @property
    def durable_index(self) -> int:
        """The highest index whose entry is durable; the index before the first when none is."""
        ends = self._state.ends
        durable = bisect_right(ends, self.durable_position)
        return self._state.first_index + durable - 1 if ends else 0

    def sync(self) -> None:
        """Make durable what anyone waits for, off the loop, then call `on_durable`.

        One sync runs at a time. What is written meanwhile is synced together, after it.
        """
        self.history.note_repair()
        self._writer.sync(self._frames.needing_sync)

    def note_synced(self) -> None:
        """Write down what is durable, when idle. It narrows the window that `opening` describes."""
        writer = self._writer
        if writer.carried_position < writer.durable_position:
            writer.append(JournalFrameKind.NOTE, b"")
        writer.flush()

    def on_second(self) -> None:
        """Write down the commit index and the durable position; look at the free space."""
        if self._writer.failure is None:
            self._write_notes()
            self.note_synced()
            self._free_space.look()

    def _write_notes(self) -> None:
        """Write down the commit index and what is known of the peers, if they changed."""
        commit_index = self.commit_index
        if commit_index != self._commit_written:
            self._commit_written = commit_index
            self._writer.append(JournalFrameKind.COMMIT, index_body(commit_index))
        self.history.write_known(self._writer)

    def scrub(self) -> Generator[int, None, None]:
        """Read through the closed segments; yields the bytes of each step. Raises DamagedError."""
        return scrub_segments(self._disk, self._identity, self._writer.closed)

    def close(self) -> None:
        """Make everything durable, write that down, and close. Blocks. Raises OSError."""
        if self._writer.failure is None:
            self._write_notes()
        self._writer.close()
