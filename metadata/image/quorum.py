"""The quorum's own facts in the log: voters, epochs, generation.

Rule: an epoch begins at the offset of its BeginEpoch record and has the number of the batch that
holds it; the number is known when the batch ends. The history of epochs is never cut here: it
grows with elections, not with work.
"""

from collections.abc import Generator
from typing import Final, TypeVar

import msgspec

from metadata.buckets import BucketMap, mix_int, mix_text
from metadata.image.overlay import Overlay
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    BeginEpochRecord,
    ClusterGenerationRecord,
    EpochStartRecord,
    KRaftVersionRecord,
    Record,
    Voter,
    VotersRecord,
)

R = TypeVar("R", bound=Record)


class EpochStart(msgspec.Struct, frozen=True):
    """Where an epoch began, and who led it."""

    offset: int
    leader_id: int


class QuorumImage(msgspec.Struct, frozen=True):
    """The newest fact of each kind, and every epoch."""

    facts: BucketMap[str, Record]
    """By the name of the record's class."""
    epochs: BucketMap[int, EpochStart]

    def _newest(self, kind: type[R]) -> R | None:
        record = self.facts.get(kind.__name__)
        return record if isinstance(record, kind) else None

    @property
    def leader(self) -> BeginEpochRecord | None:
        """Who leads the newest epoch, with the voters and who of them voted for it."""
        return self._newest(BeginEpochRecord)

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The members of the quorum as the log says them; empty before it does."""
        record = self._newest(VotersRecord)
        return () if record is None else record.voters

    @property
    def generation(self) -> int:
        """How often this cluster was begun or recovered; 0 before the log says so."""
        record = self._newest(ClusterGenerationRecord)
        return 0 if record is None else record.generation

    @property
    def k_raft_version(self) -> int:
        """The version of the quorum's own protocol (KIP-853)."""
        record = self._newest(KRaftVersionRecord)
        return 0 if record is None else record.k_raft_version


EMPTY_QUORUM = QuorumImage(BucketMap(mix_text), BucketMap(mix_int))


def epoch_records(epoch: int, start: EpochStart) -> tuple[Record, ...]:
    """Return the record that restores an epoch."""
    return (EpochStartRecord(epoch, start.offset, start.leader_id),)


class QuorumDelta:
    """Replay of control records."""

    def __init__(self, image: QuorumImage) -> None:
        self.facts = Overlay(image.facts)
        self.epochs = Overlay(image.epochs)

    def apply_in_steps(self) -> Generator[None, None, QuorumImage]:
        return QuorumImage(
            (yield from self.facts.apply_in_steps()), (yield from self.epochs.apply_in_steps())
        )

    @replays(VotersRecord, KRaftVersionRecord, ClusterGenerationRecord)
    def note(self, record: Record, offset: int) -> None:
        """A record replaces the one of its kind."""
        self.facts.set(type(record).__name__, record)

    def begin(self, epoch: int, start: EpochStart) -> None:
        """An epoch began there, unless it is known where it began."""
        if epoch not in self.epochs:
            self.epochs.set(epoch, start)

    @replays(EpochStartRecord)
    def restore_epoch(self, record: EpochStartRecord, offset: int) -> None:
        """A snapshot says where an epoch began."""
        self.begin(record.epoch, EpochStart(record.offset, record.leader_id))


TABLES: Final = (
    ImageTable("quorum", "quorum", "facts", itself, "quorum"),
    ImageTable("epochs", "quorum", "epochs", epoch_records, "epoch", ("epoch",)),
)
