"""What the journal of a stopped node holds, and what the journals say of each other.

Rule: reading changes nothing in the folder.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quorum.api import FIRST_GENERATION, ClusterGeneration, Mark
from quorum.journal import Known
from quorum.journal.damage import DamagedError
from quorum.journal.inspection import JournalFound, inspect_journal
from quorum.journal.installing import MARKER
from quorum.journal.lineage import Lineage
from quorum.membership.formation import Pinned, decode_formation, generation_of
from quorum.membership.voters_entry import voters_of
from quorum.wire.codec import BadBytesError
from quorum.wire.commands import payloads_in
from runtime.disk.interface import Disk


class HeldEntry(NamedTuple):
    """An entry of a journal."""

    at: int
    """Its index."""
    epoch: int
    payloads: tuple[bytes, ...]


class Holdings(NamedTuple):
    """What one journal holds."""

    cluster_id: str
    node_id: int
    directory_id: bytes
    generation: ClusterGeneration
    voter_sets: tuple[Pinned, ...]
    """Every set of voters that may be in force, the newest one last: by node id. The set at the
    commit index, and those that entries behind it name. Empty: the journal names no voters."""
    epoch: int
    """The highest that any frame names."""
    voted_for: str
    """For whom the node voted in its last epoch; empty: for nobody, or it isn't known."""
    entries: tuple[HeldEntry, ...]
    """Up to the first damaged byte."""
    last_index: int
    last_epoch: int
    commit_index: int
    mark: Mark | None
    """Of the manifest: everything up to it was durable in the owner's files."""
    damage: str
    """In a sentence; empty: the journal is sound."""
    torn: str
    """The incomplete end that a crash left, in a sentence; empty: there is none."""
    last_sequence: int
    lineage: Lineage
    known: dict[bytes, Known]

    @property
    def voters(self) -> Pinned:
        """The newest set of voters; empty: the journal names none."""
        return self.voter_sets[-1] if self.voter_sets else {}


def holdings_of(disk: Disk) -> Holdings | None:
    """Return what a folder's journal holds; None where there is none.

    Raises DamagedError if it can't be said whose journal it is, or if a recovery of the folder was
    interrupted when it counted already: the journal here is not the one that the next start has.
    Raises OSError.
    """
    if disk.exists(MARKER):
        raise DamagedError(
            f"a recovery of this folder was interrupted when it counted already ({MARKER} is "
            "there), and the next start of its node finishes it: start this controller once, stop "
            "it, and look again"
        )
    found = inspect_journal(disk)
    return None if found is None else _holdings(found)


def _holdings(found: JournalFound) -> Holdings:
    identity, state = found.identity, found.state
    formation = state.formation or b""
    try:
        first = decode_formation(formation, identity.cluster_id) if formation else {}
        voter_sets = _voter_sets(first, found) if first else ()
        entries = tuple(HeldEntry(i, term, payloads_in(c)) for c, i, term in state.entries)
    except BadBytesError as error:
        raise DamagedError(f"the journal holds what no release wrote: {error}") from error
    mark = None if found.manifest is None else found.manifest.mark
    return Holdings(
        cluster_id=identity.cluster_id,
        node_id=identity.node_id,
        directory_id=identity.directory_id,
        generation=generation_of(formation) or FIRST_GENERATION,
        voter_sets=voter_sets,
        epoch=found.highest_term,
        voted_for=_voted(state.vote.voted_for),
        entries=entries,
        last_index=max(state.last_index, 0 if mark is None else mark.index),
        last_epoch=max(state.last_epoch, 0 if mark is None else mark.epoch),
        commit_index=max(state.commit_index, 0 if mark is None else mark.index),
        mark=mark,
        damage=found.damage,
        torn=found.torn,
        last_sequence=found.last_sequence,
        lineage=state.lineage,
        known=dict(state.known),
    )


def _voter_sets(first: Pinned, found: JournalFound) -> tuple[Pinned, ...]:
    """Return every set that may be in force, as in `quorum.membership.voter_history`.

    Raises BadBytesError.
    """
    manifest, state = found.manifest, found.state
    base = 0 if manifest is None else manifest.mark.index
    sets = [first]
    if manifest is not None and manifest.voters:
        sets = [{voter.node_id: voter.directory_id for voter in manifest.voters}]
    for command, index, _ in state.entries:
        voters = voters_of(command) if index > base else None
        if voters is not None:
            newer = {voter.node_id: voter.directory_id for voter in voters}
            sets = [newer] if index <= state.commit_index else [*sets, newer]
    return tuple(sets)


def _voted(voted_for: object) -> str:
    """Return the node's id out of the core's name for it, `<node id>@<directory id>`."""
    said = voted_for.decode(errors="replace") if isinstance(voted_for, bytes) else voted_for
    number = str(said).partition("@")[0]
    return number if number.isdigit() else ""


def older_copies(all_held: Sequence[Holdings]) -> dict[bytes, str]:
    """Return the directories that another folder remembers further than they are, and how.

    Such a folder was put back from a copy, or lost bytes that were durable (`guard.memory`).
    """
    found: dict[bytes, str] = {}
    for one in all_held:
        for other in all_held:
            known = one.known.get(other.directory_id)
            if known is None or not known.incarnation or one.directory_id == other.directory_id:
                continue
            if not other.lineage.holds(known.incarnation, known.position):
                found[other.directory_id] = (
                    f"node {one.node_id} remembers this folder at position {known.position} of "
                    "its journal, which it doesn't hold: it is an older copy, or lost bytes"
                )
    return found
