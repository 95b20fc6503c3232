"""The facts about the quorum in the log: voters, epochs, generation.

Rule: an epoch begins at the offset of its BeginEpoch record. Its number is that of the batch that
holds the record, and replay learns the number when the batch ends. The image keeps all epochs:
there is one per election, however much is written.
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
    ClusterKeyRecord,
    EpochStartRecord,
    KRaftVersionRecord,
    Record,
    SubjectKeysRecord,
    Voter,
    VotersRecord,
)

R = TypeVar("R", bound=Record)


class EpochStart(msgspec.Struct, frozen=True):
    """The offset at which an epoch began, and its leader."""

    offset: int
    leader_id: int


class QuorumImage(msgspec.Struct, frozen=True):
    """The newest fact of each kind, and every epoch."""

    facts: BucketMap[str, Record]
    """The newest record, by the name of its class."""
    epochs: BucketMap[int, EpochStart]

    def _newest(self, kind: type[R]) -> R | None:
        record = self.facts.get(kind.__name__)
        return record if isinstance(record, kind) else None

    @property
    def leader(self) -> BeginEpochRecord | None:
        """The leader of the newest epoch, the voters, and the voters that voted for it."""
        return self._newest(BeginEpochRecord)

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voters of the quorum according to the log; empty: the log has none yet."""
        record = self._newest(VotersRecord)
        return () if record is None else record.voters

    @property
    def generation(self) -> int:
        """1, and one more for each recovery of the cluster; 0: the log has none yet."""
        record = self._newest(ClusterGenerationRecord)
        return 0 if record is None else record.generation

    @property
    def cluster_key_id(self) -> bytes | None:
        """The id of the key under which secrets are sealed; None: the log names none."""
        record = self._newest(ClusterKeyRecord)
        return None if record is None else record.key_id

    @property
    def subject_keys_id(self) -> bytes | None:
        """The id of the tree of subjects' keys; None: there is none, or its cluster key is gone."""
        record = self._newest(SubjectKeysRecord)
        if record is None or record.cluster_key_id != self.cluster_key_id:
            return None
        return record.keys_id

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
    """Replays the control records."""

    def __init__(self, image: QuorumImage) -> None:
        self.facts = Overlay(image.facts)
        self.epochs = Overlay(image.epochs)

    def apply_in_steps(self) -> Generator[None, None, QuorumImage]:
        return QuorumImage(
            (yield from self.facts.apply_in_steps()), (yield from self.epochs.apply_in_steps())
        )

    @replays(
        VotersRecord,
        KRaftVersionRecord,
        ClusterGenerationRecord,
        ClusterKeyRecord,
        SubjectKeysRecord,
    )
    def note(self, record: Record, offset: int) -> None:
        """Set the newest record of a class."""
        self.facts.set(type(record).__name__, record)

    def begin(self, epoch: int, start: EpochStart) -> None:
        """Note where an epoch began, unless that is known already."""
        if epoch not in self.epochs:
            self.epochs.set(epoch, start)

    @replays(EpochStartRecord)
    def restore_epoch(self, record: EpochStartRecord, offset: int) -> None:
        """Note from a snapshot where an epoch began.

        A large snapshot is loaded in several deltas. The one with the BeginEpoch record may have
        ended before this record, with the snapshot's own offset as the epoch's start.
        """
        self.epochs.set(record.epoch, EpochStart(record.offset, record.leader_id))


TABLES: Final = (
    ImageTable("quorum", "quorum", "facts", itself, "quorum"),
    ImageTable("epochs", "quorum", "epochs", epoch_records, "epoch", ("epoch",)),
)
