"""Begins a new generation in a folder: another journal, whose voters and entries the caller names.

Rule: the new journal says the same in the folder of each voter of the generation. All it holds
counts as committed, because every voter of the generation begins with it. So a folder must have the
ledger, and the checkpoints, up to the mark that it begins behind.

Each folder gets a directory id of its own. So it is another voter than the one that it was, also to
a node of an earlier generation.

`epoch_of_next` leaves a wide gap above every epoch that a survivor knows. Nodes that are lost may
have held elections that no survivor heard of. The new generation must not use those epochs again:
what was written in them must never look like what is written now. For the same reason the
generation's id chooses one of many epochs above the gap. Somebody may recover or restore twice from
the same files, and brokers may have followed the first result. If both results used the same
epochs, such a broker would take the second history for the first.
"""

from typing import NamedTuple

from quorum.api import GENERATION_ID_BYTES, ClusterGeneration, Mark, Voter
from quorum.journal.identity import JournalIdentity
from quorum.journal.installing import Installation, finish_installation, stage_journal
from quorum.journal.manifest import JournalManifest
from quorum.journal.opening import UNKNOWN_VOTE
from quorum.journal.state import JournalState, Vote
from quorum.membership.formation import encode_formation
from quorum.recovery.holdings import HeldEntry
from quorum.terms import TERM_MAX, leap_from
from quorum.wire.commands import NO_OP, encode_command
from runtime.disk.interface import Disk

EPOCH_GAP = 2**16
"""With an election each half second without a pause, nine hours. The id chooses among as many."""


class NoEpochLeftError(Exception):
    """No epoch is left for another generation."""


class GenerationStart(NamedTuple):
    """What a new generation begins with; the same for all its voters."""

    cluster_id: str
    generation: ClusterGeneration
    voters: tuple[Voter, ...]
    epoch: int
    """The epoch of the generation's first entry; its first leader has a later one."""
    after: Mark
    """Everything up to here is in the folder's ledger. The index is free to choose, from 2 on."""
    entries: tuple[HeldEntry, ...]
    """The entries behind the mark, with ascending epochs, none above `epoch`."""


def epoch_of_next(highest: int, generation_id: bytes) -> int:
    """Return the epoch in which the generation behind this epoch begins.

    Raises NoEpochLeftError.
    """
    if highest + 2 * EPOCH_GAP >= TERM_MAX:
        raise NoEpochLeftError(
            f"epoch {highest} is known, and epochs end at {TERM_MAX}: none is left for another "
            "generation. Read what remains with `logberg log`, and begin a new cluster"
        )
    return highest + EPOCH_GAP + _chosen_by(generation_id, EPOCH_GAP)


def epoch_of_restored(last_epoch: int, generation_id: bytes) -> int:
    """Return the epoch in which a generation begins from a backup that ends in `last_epoch`.

    The backup may be old, and the cluster may have gone on since. It would take six days of
    elections, one a second, to reach the lowest of these epochs.
    """
    leap = leap_from(last_epoch)
    return last_epoch + leap - _chosen_by(generation_id, leap // 2)


def _chosen_by(generation_id: bytes, many: int) -> int:
    """Return a number below `many`, the same for the same id."""
    return int.from_bytes(generation_id[:8], "big") % max(many, 1)


def begin_generation(
    disk: Disk, start: GenerationStart, node_id: int, *, above_sequence: int = 0, keep: str
) -> Installation:
    """Give a folder the journal of a new generation; the voters name its directory.

    `above_sequence`: of the old journal's segments. `keep`: the folder that the old journal and
    manifest are moved to. After a crash the folder is of the old generation or of the new one.
    Blocks. Raises OSError.
    """
    assert len(start.generation.id) == GENERATION_ID_BYTES
    ours = next(voter for voter in start.voters if voter.node_id == node_id)
    pinned = {voter.node_id: voter.directory_id for voter in start.voters}
    at, epoch = start.after.index, start.after.epoch
    pair = ((NO_OP, at - 1, epoch), (NO_OP, at, epoch))
    state = JournalState()
    state.entries = [
        *pair,
        *((encode_command(entry.payloads), entry.at, entry.epoch) for entry in start.entries),
    ]
    state.vote = Vote(start.epoch, UNKNOWN_VOTE)
    state.commit_index = state.last_index
    state.formation = encode_formation(start.cluster_id, pinned, start.generation)
    manifest = JournalManifest(
        cluster_id=start.cluster_id,
        first=pair[0],
        second=pair[1],
        mark_data=start.after.data,
        voters=start.voters,
        directory_id=ours.directory_id,
    )
    identity = JournalIdentity(start.cluster_id, node_id, ours.directory_id)
    stage_journal(disk, identity, above_sequence + 1, state, manifest, keep)
    installed = finish_installation(disk)
    assert installed is not None
    return installed
