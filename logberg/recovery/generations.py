"""Begins a new generation of a cluster behind the log that a folder holds.

Rule: the first batch of a generation says in the log what happened: BeginEpoch, in an epoch far
above all that were used; ClusterGeneration, with the reason; and the voters. Its provenance says
who did it. It is committed, because every voter of the generation begins with it.

A folder for which `begin_in` is called must hold the ledger, durably, and the checkpoints up to the
mark of the generation. Example of other use: a restored backup is such a folder.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ledger.batch import Batch, Provenance
from ledger.chain import LogMark
from logberg.backups.generation import first_batch
from metadata.image import MetadataImage
from metadata.records import Voter
from metadata.voter_records import QUORUM_ENDPOINT, voter_record
from quorum import api
from quorum.recovery.generation import GenerationStart, begin_generation, epoch_of_next
from quorum.recovery.holdings import HeldEntry
from runtime.disk.interface import Disk
from runtime.randomness import Random

OPERATION = "RecoverQuorum"
_LOG_NEEDS_AN_ENTRY = 2


class NewGeneration(NamedTuple):
    """A generation that is ready to be begun in the folders of its voters."""

    start: GenerationStart
    first_batch: Batch
    voters: tuple[Voter, ...]


class UnknownVoterError(Exception):
    """Nobody knows the address of a controller that shall be a voter. The message says which."""


def plan_generation(
    image: MetadataImage,
    ledger_end: LogMark,
    tail: Sequence[Batch],
    voters: Mapping[int, tuple[str, int] | None],
    *,
    cluster_id: str,
    generation: int,
    highest_epoch: int,
    last_index: int,
    now_ms: int,
    who: Provenance,
    random: Random,
) -> NewGeneration:
    """Plan the generation behind a ledger's end and the batches that continue it.

    `voters`: by node id, the host and port of its quorum; None: as the log has it. `image`: the
    state behind the tail. `generation`: the number of the one before. `highest_epoch`,
    `last_index`: of everything that is known of it. `who`: who does it, and why.

    Raises UnknownVoterError, NoEpochLeftError.
    """
    members = tuple(
        _member(node_id, address, random.randbytes(16), image)
        for node_id, address in sorted(voters.items())
    )
    number = max(generation, image.quorum.generation) + 1
    generation_id = random.randbytes(api.GENERATION_ID_BYTES)
    epoch = epoch_of_next(max(highest_epoch, ledger_end.epoch), generation_id)
    mark = ledger_end.after(tail[-1]) if tail else ledger_end
    first = first_batch(mark, members, number, epoch, now_ms, who)
    at = max(last_index, _LOG_NEEDS_AN_ENTRY) + 2
    entries = [(batch.header.epoch, batch.encoded) for batch in (*tail, first)]
    start = GenerationStart(
        cluster_id=cluster_id,
        generation=api.ClusterGeneration(number, generation_id),
        voters=tuple(map(_for_quorum, members)),
        epoch=epoch,
        after=api.Mark(at, ledger_end.epoch, ledger_end.encode()),
        entries=tuple(
            HeldEntry(at + place, of, (encoded,))
            for place, (of, encoded) in enumerate(entries, start=1)
        ),
    )
    return NewGeneration(start, first, members)


def begin_in(
    disk: Disk, planned: NewGeneration, node_id: int, *, above_sequence: int = 0, keep: str
) -> None:
    """Begin a planned generation in the folder of one of its voters. Blocks. Raises OSError."""
    begin_generation(disk, planned.start, node_id, above_sequence=above_sequence, keep=keep)


def _member(
    node_id: int, address: tuple[str, int] | None, directory_id: bytes, image: MetadataImage
) -> Voter:
    """Return a voter of the generation. Raises UnknownVoterError if it has no address."""
    if address is not None:
        return voter_record(node_id, directory_id, *address)
    known = {voter.voter_id: voter for voter in image.quorum.voters}
    if node_id not in known:
        names = ", ".join(map(str, sorted(known))) or "none"
        raise UnknownVoterError(
            f"the log has no address for controller {node_id}: name it with its address, as "
            f"{node_id}@HOST:PORT; the voters that the log knows: {names}"
        )
    voter = known[node_id]
    return Voter(node_id, directory_id, voter.endpoints, voter.k_raft_version_feature)


def _for_quorum(voter: Voter) -> api.Voter:
    hosts: Mapping[str, tuple[str, int]] = {
        each.name: (each.host, each.port) for each in voter.endpoints
    }
    host, port = hosts.get(QUORUM_ENDPOINT, ("", 0))
    return api.Voter(voter.voter_id, voter.voter_directory_id, host, port)
