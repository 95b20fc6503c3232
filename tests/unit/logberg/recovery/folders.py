"""Folders of stopped controllers, as a cluster leaves them: a real journal and a real ledger."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ledger.batch import Batch, BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.ledger import Ledger
from logberg.recovery.survivors import Survivor, read_survivor
from metadata.codec import encode_records
from metadata.records import (
    BeginEpochRecord,
    ClusterGenerationRecord,
    EpochVoter,
    KRaftVersionRecord,
    NoOpRecord,
    Record,
    Voter,
    VoterEndpoint,
    VoterKRaftVersions,
    VotersRecord,
)
from quorum import api
from quorum.api import FIRST_GENERATION, ClusterGeneration
from quorum.journal import Known, RaftJournal
from quorum.membership.formation import encode_formation
from quorum.membership.voters_entry import encode_voters
from quorum.wire.commands import NO_OP, encode_command, encode_voters_command
from runtime.disk.interface import Disk
from tests.unit.audit.nodes import InlineDisk
from tests.unit.quorum.journal.rig import LOG

CLUSTER = "recovered-cluster"
VOTERS = (1, 2, 3)
DIRECTORIES = {n: bytes([n]) * 16 for n in range(1, 8)}
SECOND = ClusterGeneration(2, b"g" * 16)


def history(*epochs: tuple[int, int], cluster: str = CLUSTER, salt: str = "") -> list[Batch]:
    """A log: for each epoch its BeginEpoch, and so many batches of two records behind it.

    Of offsets: the first batch has 4 records, each later BeginEpoch 1.
    """
    mark, made = LogMark.beginning(cluster), []
    for epoch, count in epochs:
        contents: list[list[Record]] = [_beginning(epoch, first=not made)]
        contents += [[NoOpRecord(), NoOpRecord()] for _ in range(count)]
        for records in contents:
            provenance = Provenance(principal="User:alice", operation="Test", reason=salt)
            now = mark.timestamp_ms + 1
            header = BatchHeader(mark.log_end, len(records), epoch, now, provenance, mark.head)
            made.append(seal(header, encode_records(records)))
            mark = mark.after(made[-1])
    return made


def _beginning(epoch: int, *, first: bool) -> list[Record]:
    voters = tuple(EpochVoter(n, DIRECTORIES[n]) for n in VOTERS)
    records: list[Record] = [BeginEpochRecord(1, voters, ())]
    if first:
        members = tuple(
            Voter(
                n,
                DIRECTORIES[n],
                (VoterEndpoint("QUORUM", f"host-{n}", 9093),),
                VoterKRaftVersions(0, 1),
            )
            for n in VOTERS
        )
        records += [ClusterGenerationRecord(1, ""), KRaftVersionRecord(1), VotersRecord(members)]
    return records


@dataclass
class Made:
    """What one folder holds."""

    node_id: int = 1
    log: Sequence[Batch] = ()
    in_ledger: int = 0
    """How many batches of the log were applied."""
    committed: int = -1
    """How many batches the journal knows to be committed; -1: as many as were applied."""
    in_journal: int = -1
    """How many of the log's batches the journal reaches to; -1: all."""
    generation: ClusterGeneration = FIRST_GENERATION
    cluster: str = CLUSTER
    observes: bool = False
    term: int = 0
    known: dict[bytes, Known] = field(default_factory=dict)
    voters: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Who votes from a batch on, the one with this number; before the first, VOTERS."""


def write(disk: Disk, made: Made) -> None:
    """Write a folder."""
    ledger = Ledger.open(disk, made.cluster, synced_to=None, segment_bytes=600, log=LOG)
    for batch in made.log[: made.in_ledger]:
        ledger.accept(batch.header.epoch, batch)
    ledger.close()
    journal = RaftJournal.open(
        disk,
        cluster_id=made.cluster,
        node_id=made.node_id,
        new_directory_id=DIRECTORIES[made.node_id],
        manifest=None,
        on_durable=lambda: None,
        on_failed=lambda _: None,
        log=LOG,
    )
    if not made.observes:
        pinned = {n: DIRECTORIES[n] for n in VOTERS}
        journal.set_formation(encode_formation(made.cluster, pinned, made.generation))
    journal.history.begin_incarnation(b"incarnat")
    journal.add(NO_OP, 1, 0)
    end = len(made.log) if made.in_journal < 0 else made.in_journal
    for index, batch in enumerate(made.log[:end], start=2):
        journal.add(_command(batch, made.voters.get(index - 1)), index, batch.header.epoch)
    last = made.log[end - 1].header.epoch if end else 0
    journal.set_term(max(last, made.term), None)
    committed = made.in_ledger if made.committed < 0 else made.committed
    journal.set_commit_index(min(1 + committed, 1 + end))
    for directory_id, known in made.known.items():
        journal.history.remember(directory_id, known)
    journal.close()


def _command(batch: Batch, voters: Sequence[int] | None) -> bytes:
    if voters is None:
        return encode_command([batch.encoded])
    members = [api.Voter(n, DIRECTORIES[n], f"host-{n}", 9093) for n in voters]
    return encode_voters_command(encode_voters(members), [batch.encoded])


def survivor(folder: Path, name: str, made: Made) -> Survivor:
    """Write a folder on a real disk, and read it."""
    disk = InlineDisk(folder / name)
    write(disk, made)
    return read_survivor(name, disk)


def damage_journal(folder: Path, share: float = 0.5) -> None:
    """Flip a byte of the journal."""
    path = max((folder / "journal").glob("*.wal"))
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 0xFF
    path.write_bytes(data)
