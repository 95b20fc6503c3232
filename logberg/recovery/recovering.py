"""Recovers a cluster: from the folders that are left to a new generation of it.

Rule: first everything is read and planned, and nothing is written. Then the folders of new voters
are made, whole, beside the old one. Last, the chosen folder gets its new journal, in one step. A
crash before that step leaves a cluster that was not recovered. Nothing is removed: the old journal
and manifest stay in the chosen folder, under the name that the plan says.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from audit.reading.replay import Fold
from audit.reading.state_start import start_for
from ledger.batch import Provenance
from ledger.chain import LogMark
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER
from logberg.recovery.choosing import Choice, NoChoiceError
from logberg.recovery.generations import NewGeneration, begin_in, plan_generation
from logberg.recovery.survivors import Survivor
from metadata.image import EMPTY, MetadataImage
from runtime.disk.interface import Disk
from runtime.randomness import Random
from snapshots.checkpoint import FOLDER as CHECKPOINTS

_PIECE_BYTES = 4 * 1024 * 1024
_COPIED = (LOG_FOLDER, ARCHIVE_FOLDER, CHECKPOINTS)


class RecoveryPlan(NamedTuple):
    """What a recovery will do."""

    survivor: Survivor
    generation: NewGeneration
    keep: str
    """The folder, inside the chosen one, for the old journal and manifest."""


def plan_recovery(
    choice: Choice,
    survivors: Sequence[Survivor],
    voters: Mapping[int, tuple[str, int] | None],
    *,
    now_ms: int,
    who: Provenance,
    random: Random,
) -> RecoveryPlan:
    """Plan a recovery from the chosen folder. Reads only.

    `voters`: as of `plan_generation`; the chosen folder's node must be one of them. `survivors`:
    all folders that were read, because the new generation needs an epoch above all that any of them
    knows.

    Raises NoChoiceError, UnknownVoterError, NoEpochLeftError, NoLogError, LedgerError, OSError.
    """
    chosen = choice.chosen
    if chosen.node_id not in voters:
        raise NoChoiceError(
            f"node {chosen.node_id} has the most complete folder, so it must be a voter of the new "
            f"generation: name it, too (--voter {chosen.node_id})"
        )
    journal = chosen.journal
    generation = plan_generation(
        image_of(chosen),
        chosen.ledger_end,
        chosen.tail,
        voters,
        cluster_id=journal.cluster_id,
        generation=journal.generation.number,
        highest_epoch=max(each.journal.epoch for each in survivors),
        last_index=max(each.journal.last_index for each in survivors),
        now_ms=now_ms,
        who=who,
        random=random,
    )
    number = generation.start.generation.number
    return RecoveryPlan(chosen, generation, _free_name(chosen.disk, f"before-generation-{number}"))


def image_of(survivor: Survivor) -> MetadataImage:
    """Return the state behind the log of a folder.

    Raises NoLogError, LedgerError, OSError.
    """
    end, reader = survivor.ledger_end, survivor.reader
    if reader is None:
        fold = Fold(EMPTY, LogMark.beginning(survivor.journal.cluster_id))
    else:
        start = start_for(survivor.disk, reader, end.log_end)
        fold = Fold(start.image, start.mark)
        for _ in fold.take_all(reader.batches(fold.mark.log_end, end.log_end)):
            pass
    for batch in survivor.tail:
        fold.take(batch)
    return fold.image


def begin(plan: RecoveryPlan, new_folders: Mapping[int, Disk]) -> None:
    """Do what was planned. The chosen folder must be locked. Blocks. Raises OSError.

    `new_folders`: empty ones, by node id, for voters of the generation. Each becomes a whole folder
    of that voter, which is carried to its machine.
    """
    source, planned = plan.survivor.disk, plan.generation
    for node_id, disk in new_folders.items():
        disk.lock()
        for folder in _COPIED:
            _copy_files(source, disk, folder)
        begin_in(disk, planned, node_id, keep=plan.keep)
    # The new manifest says that the ledger is durable up to the mark.
    for folder in (LOG_FOLDER, ARCHIVE_FOLDER):
        for name in source.list(folder):
            file = source.open(f"{folder}/{name}")
            file.sync()
            file.close()
    if source.list(LOG_FOLDER):
        source.sync_folder(LOG_FOLDER)
    journal = plan.survivor.journal
    begin_in(source, planned, journal.node_id, above_sequence=journal.last_sequence, keep=plan.keep)


def _copy_files(source: Disk, target: Disk, folder: str) -> None:
    names = source.list(folder)
    if not names:
        return
    target.make_folder(folder)
    for short in names:
        name = f"{folder}/{short}"
        file = target.open(name)
        while piece := source.read(name, file.size(), _PIECE_BYTES):
            file.append(piece)
        file.sync()
        file.close()
    target.sync_folder(folder)


def _free_name(disk: Disk, name: str) -> str:
    """Return a name under which no folder holds files yet."""
    number, found = 1, name
    while disk.list(found) or disk.list(f"{found}/journal"):
        number += 1
        found = f"{name}-{number}"
    return found
