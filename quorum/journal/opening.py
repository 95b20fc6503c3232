"""Opens a journal: distinguishes a torn tail from damage, and repairs the files either way.

Rule: let E be the position of the first bad byte, and S the highest position that is known to have
been durable. If E >= S, nobody was promised anything from E on. It is a torn tail, even if good
frames follow, because unsynced sectors reach the disk in any order. If E < S, bytes that were
durable have changed. That is damage: lost entries may have been acknowledged, or a vote may be
among them, so the node must not vote.

S is the highest of three: what any good header says (headers behind E are searched for, too), what
the synced notes say, and what the manifest says.

What remains unknown is the time between the end of a sync and the first write after it: the
synced notes, the next frame, or the note written when idle or at a stop. A loss of power may take
these, because they are not synced. In that window, and only there, lost durable bytes look like a
torn tail. No reader could tell the difference, because nothing on the disk says that they were
durable.

No file is rewritten in place. Bytes between S and E were never known to be durable, and after a
failed sync they may exist only in memory. So they are written again, to a new segment that appears
under its name whole and durable, and supersedes the old bytes. After damage, a fresh segment holds
the good part, and the old files stay beside it as evidence.
"""

from typing import TYPE_CHECKING, NamedTuple

from quorum.journal.chain import Chain, frames_between, is_seam, read_chain, read_files
from quorum.journal.damage import DamagedError, JournalDamage, TornTail, WrongFolderError
from quorum.journal.frames import JournalFrame, JournalFrameKind
from quorum.journal.identity import FOLDER, JournalIdentity
from quorum.journal.replacement import SegmentReplacement
from quorum.journal.segments import JournalSegment
from quorum.journal.state import Entry, JournalState, Vote, entry_body
from quorum.journal.synced_notes import NAME as SYNCED_NOTES
from quorum.journal.synced_notes import noted_position
from quorum.terms import LEAP_MAX, TERM_MAX, is_term
from runtime.disk.interface import Disk

if TYPE_CHECKING:
    from quorum.journal.manifest import JournalManifest

DAMAGED_SUFFIX = ".damaged"
UNKNOWN_VOTE = "unknown"
"""The vote of a node whose journal was damaged: nobody gets its vote in that term."""


class Opened(NamedTuple):
    """A journal, read and repaired; everything up to `position` is durable."""

    identity: JournalIdentity
    segments: list[JournalSegment]
    state: JournalState
    position: int
    damage: JournalDamage | None
    """The damage found now; earlier damage stays in the state until it is repaired."""
    torn: TornTail | None
    reset: bool
    """The entries are those of the manifest alone: a catch-up was finished."""


def open_journal(
    disk: Disk,
    cluster_id: str,
    node_id: int,
    new_directory_id: bytes,
    manifest: "JournalManifest | None",
    *,
    accepts_epoch: bool = False,
) -> Opened:
    """Read the journal, or begin one. Blocks.

    Raises WrongFolderError, DamagedError, OSError.
    """
    disk.make_folder(FOLDER)
    files = read_files(disk, cluster_id, node_id)
    if not files:
        _refuse_remains(disk, manifest)
        identity = JournalIdentity(cluster_id, node_id, new_directory_id)
        return _begin(disk, identity, 1, 0, JournalState())
    # A process killed after a rename leaves a name that is not durable yet. A loss of power could
    # take that name away, with everything that is appended to its file from now on.
    disk.sync_folder(FOLDER)
    chain = read_chain(files)
    if not is_term(chain.highest_term):
        chain = _without_impossible_term(chain, accepts_epoch=accepts_epoch)
    synced = max(chain.synced, noted_position(disk, chain.identity))
    if manifest is not None:
        _refuse_other_directory(chain.identity, manifest)
        synced = max(synced, manifest.journal_position)
    damage, torn = judge(chain, synced)
    _undo_unheard_repair(chain.state, synced)
    fit = _Fit(chain.state, manifest, damage)
    if fit.damage is not None or fit.reset:
        opened = _begin_again(disk, chain, synced, fit)
        return opened._replace(damage=fit.damage, torn=torn, reset=fit.reset)
    _tidy(disk, chain.obsolete, chain.state)
    if chain.problem is None and chain.end == synced:
        return Opened(
            chain.identity, chain.segments, chain.state, chain.end, None, None, reset=False
        )
    return _write_tail_again(disk, chain, synced)._replace(torn=torn)


def _refuse_remains(disk: Disk, manifest: "JournalManifest | None") -> None:
    if manifest is None and not disk.exists(SYNCED_NOTES):
        return
    raise DamagedError(
        f"{FOLDER}/ holds no segment, yet the node has run before: restore the folder, or move "
        "the node's whole folder away; with an empty one it joins as an observer, which "
        "holds everything and does not vote"
    )


def _without_impossible_term(chain: Chain, *, accepts_epoch: bool) -> Chain:
    """Refuse a journal with a term above the last one, unless the operator accepts it.

    Release 0.1 took such terms from any frame, but nobody can have led one. If the operator says
    that all controllers were stopped, the node goes on in a term far enough above its last entry
    that it can't have voted in a higher real one.
    """
    state = chain.state
    if not is_term(state.last_epoch):
        raise DamagedError(
            f"{FOLDER}/ holds an entry of epoch {state.last_epoch}, and epochs end at {TERM_MAX}: "
            "restore the folder, or move the node's whole folder away"
        )
    if not accepts_epoch:
        raise DamagedError(
            f"{FOLDER}/ holds epoch {chain.highest_term}, and epochs end at {TERM_MAX}: a forged "
            "frame raised it under an earlier release. Stop every controller, put an empty file "
            "`accept-epoch` into the folder of each, and start them (runbook, `epochs used up`)"
        )
    state.vote = Vote(min(TERM_MAX, state.last_epoch + LEAP_MAX), UNKNOWN_VOTE)
    return chain._replace(highest_term=state.vote.term)


def _refuse_other_directory(identity: JournalIdentity, manifest: "JournalManifest") -> None:
    theirs, ours = manifest.directory_id or identity.directory_id, identity.directory_id
    if (manifest.cluster_id, theirs) == (identity.cluster_id, ours):
        return
    nodes = [voter.node_id for voter in manifest.voters if voter.directory_id == theirs]
    whose = f"node {nodes[0]}" if nodes else f"directory {theirs.hex()}"
    raise WrongFolderError(
        f"the manifest belongs to {whose} of cluster {manifest.cluster_id}, and the journal beside "
        f"it to node {identity.node_id} (directory {ours.hex()}) of cluster {identity.cluster_id}: "
        "files of several folders were mixed; put each back beside its own, or move the node's "
        "whole folder away and start with an empty one"
    )


def judge(chain: Chain, synced: int) -> tuple[JournalDamage | None, TornTail | None]:
    """Distinguish damage from a torn tail, for a journal that was durable up to `synced`."""
    problem = chain.problem
    # A frame ended at S when it was durable. If one lies across S now, these are other bytes: an
    # older file was put back, or the one that superseded it is lost. It doesn't matter where E is.
    if not is_seam(chain, synced):
        within = [s for s in chain.segments if s.base < synced][-1]
        what = f"no frame ends at position {synced}, up to which all was durable"
        file = next(file for file in chain.files if file.name == within.name)
        return JournalDamage(file.name, synced - file.shift, what), None
    if problem is None:
        if chain.end >= synced:
            return None, None
        last = chain.files[-1]
        what = f"{synced - chain.end} bytes that were durable are missing at its end"
        return JournalDamage(last.name, len(last.data), what), None
    if problem.illegal or chain.end < synced:
        return JournalDamage(problem.name, problem.offset, problem.what), None
    names = [file.name for file in chain.files]
    behind = chain.files[names.index(problem.name) :]
    cut = sum(len(file.data) for file in behind) - problem.offset
    return None, TornTail(problem.name, problem.offset, cut, problem.what)


def _undo_unheard_repair(state: JournalState, synced: int) -> None:
    """Undo a repair if no durable frame says that it was durable. The node repairs itself again.

    No peer has heard of such a repair. So a sound copy from before the damage may have run in this
    folder's place since then, and peers may have accepted it (`quorum.guard.memory`). The repair's
    rank would wrongly be above that copy's promises. For the same reason a repaired node
    votes only once a durable frame after the repair says so (`FolderHistory.note_repair`).
    """
    end, was = state.repaired
    if end > synced:
        state.damage = state.damage or was


class _Fit:
    """Makes the entries begin where the manifest says, which the core requires."""

    def __init__(
        self, state: JournalState, manifest: "JournalManifest | None", damage: JournalDamage | None
    ) -> None:
        self.damage = damage
        self.reset = False
        self.pair: list[Entry] = []
        self.state = state
        if manifest is None:
            self._without_manifest()
        else:
            self.pair = [manifest.first, manifest.second]
            self._fit()
            state.commit_index = max(state.commit_index, manifest.second[1])

    def _without_manifest(self) -> None:
        state = self.state
        if state.first_index > 1 or (not state.entries and state.absent_to):
            raise DamagedError(
                f"the manifest is missing, yet the journal begins at entry "
                f"{state.first_index or state.absent_to + 1}: restore the file `manifest`, or "
                "move the node's folder away; with an empty one it joins as an observer, which "
                "holds everything and does not vote"
            )

    def _fit(self) -> None:
        state = self.state
        first, second = self.pair
        if max(state.last_index, state.absent_to) < second[1]:
            self.reset = True
        elif not state.entries or state.first_index > first[1]:
            self._damaged(f"entries before {state.first_index or state.absent_to + 1} are missing")
        else:
            self._compare(first, second)

    def _compare(self, first: Entry, second: Entry) -> None:
        state = self.state
        start = first[1] - state.first_index
        ours = state.entries[start : start + 2]
        if ours == [first, second]:
            state.drop_before(first[1])
            return
        for mine, theirs in zip(ours, (first, second), strict=True):
            if mine != theirs and (mine[2] == theirs[2] or mine[1] <= state.commit_index):
                self._damaged(f"entry {mine[1]} differs from the manifest's")
        self.reset = True

    def _damaged(self, what: str) -> None:
        self.reset = True
        if self.damage is None:
            self.damage = JournalDamage(FOLDER, 0, what)


def _begin_again(disk: Disk, chain: Chain, synced: int, fit: _Fit) -> Opened:
    """Write the good part to a fresh segment that replaces all others."""
    state = fit.state
    if fit.reset:
        state.entries, state.ends, state.absent_to = list(fit.pair), [], 0
    if fit.damage is not None:
        state.damage = str(fit.damage)
        state.vote = Vote(max(chain.highest_term, state.highest_term), UNKNOWN_VOTE)
        state.commit_index = min(state.commit_index, max(1, state.last_index))
    elif state.highest_term > state.vote.term:
        state.vote = Vote(state.highest_term, None)
    position = max(synced, chain.highest_end)
    # Do not credit frames written while opening to the previous incarnation. A later copy of this
    # folder may have written other frames at the same positions.
    state.lineage.end(chain.end)
    opened = _begin(disk, chain.identity, chain.last_sequence + 1, position, state)
    _tidy(disk, [*chain.obsolete, *(file.name for file in chain.files)], state)
    return opened


def _begin(
    disk: Disk, identity: JournalIdentity, sequence: int, position: int, state: JournalState
) -> Opened:
    frames = [(int(JournalFrameKind.STATE), state.encode(0))]
    frames += [(int(JournalFrameKind.ENTRY), entry_body(entry)) for entry in state.entries]
    segment = SegmentReplacement(identity, sequence, position, fresh=True)
    ends = [segment.add(kind, body) for kind, body in frames]
    state.ends = ends[1:]
    segment.write(disk, JournalFrameKind.NOTE, b"")
    written = JournalSegment(segment.name, sequence, position, state.last_index)
    return Opened(identity, [written], state, segment.position, None, None, reset=False)


def _write_tail_again(disk: Disk, chain: Chain, synced: int) -> Opened:
    """Write the frames that may not be durable to a new segment, which supersedes them."""
    start = max(synced, chain.segments[0].base)
    segment = SegmentReplacement(chain.identity, chain.last_sequence + 1, start, fresh=False)
    top = 0
    for frame in frames_between(chain, start, chain.end):
        segment.add(frame.kind, frame.body)
        top = max(top, _entry_index(frame))
    assert segment.position == chain.end
    # As in `_begin_again`.
    chain.state.lineage.end(chain.end)
    segment.write(disk, JournalFrameKind.STATE, chain.state.encode(_last_index(chain.state)))
    written = JournalSegment(segment.name, chain.last_sequence + 1, start, top)
    kept = [old for old in chain.segments if old.base < start]
    keep = {old.name for old in kept}
    _tidy(disk, [file.name for file in chain.files if file.name not in keep], chain.state)
    segments = [*kept, written]
    return Opened(chain.identity, segments, chain.state, segment.position, None, None, reset=False)


def _last_index(state: JournalState) -> int:
    return state.last_index or state.absent_to


def _entry_index(frame: JournalFrame) -> int:
    return int.from_bytes(frame.body[:8], "little") if frame.kind == JournalFrameKind.ENTRY else 0


def _tidy(disk: Disk, names: list[str], state: JournalState) -> None:
    """Remove superseded files, or rename them as evidence if something was damaged."""
    for name in names:
        if state.damage:
            disk.rename(name, name + DAMAGED_SUFFIX)
        else:
            disk.unlink(name)
    if names:
        disk.sync_folder(FOLDER)
