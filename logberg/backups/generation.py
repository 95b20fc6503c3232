"""A generation of a cluster: what begins one, and why nodes of the generation before can't rejoin.

A cluster begins its first generation with its first batch. A person begins the next one when the
cluster goes on from less than it may have had: from a backup, or from what survived.

Rule: a generation begins with one batch, behind the last one that is kept: BeginEpochRecord,
ClusterGenerationRecord, and VotersRecord if the log names voters. Its epoch is far above all that
the generation before can have reached. Three things keep the two apart:

- The formation names the generation, and the voters with new directory ids. A controller refuses a
  peer whose journal has another formation (`quorum.membership.greeting`).
- No epoch is in both generations from here on. So a broker that holds more than was kept learns
  from its first fetch that its history ended, and loads the new state. If it didn't, the chain
  hash would refuse the next batch.
- The chain goes on: whoever kept a head of the old generation can still prove what lies before.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from ledger.batch import Batch, BatchHeader, Provenance, seal
from ledger.chain import LogMark
from metadata.codec import decode_record, decode_records, encode_record, encode_records
from metadata.records import (
    BeginEpochRecord,
    ClusterGenerationRecord,
    EpochVoter,
    Record,
    Voter,
    VotersRecord,
)
from metadata.voter_records import voter_record
from quorum.api import Voter as QuorumVoter
from quorum.recovery.generation import epoch_of_restored

OPERATION: Final = "BeginGeneration"
OFFLINE: Final = "offline"
"""How a person is known who runs a command on the node's own files: by the operating system."""


class KnownGeneration(msgspec.Struct):
    """The newest generation and the newest voters that a log names, gathered batch by batch."""

    number: int = 0
    names_voters: bool = False

    def take(self, batch: Batch) -> None:
        """Note what a batch says of them. Almost no batch does, so it is searched, not decoded."""
        if _GENERATION not in batch.records and _VOTERS not in batch.records:
            return
        for record in decode_records(batch.records):
            if isinstance(record, ClusterGenerationRecord):
                self.number = record.generation
            elif isinstance(record, VotersRecord):
                self.names_voters = True

    def take_checkpoint(self, generation: int, voters: bytes) -> None:
        """Note what a checkpoint's header says of them."""
        self.number = max(self.number, generation)
        if voters:
            self.names_voters = self.names_voters or isinstance(decode_record(voters), VotersRecord)


def generation_batch(
    after: LogMark,
    known: KnownGeneration,
    voters: Sequence[QuorumVoter],
    *,
    principal: str,
    reason: str,
    now_ms: int,
    generation_id: bytes,
) -> Batch:
    """Return the batch that begins the next generation. Raises ValueError."""
    members = sorted(voters, key=lambda voter: (voter.node_id, voter.directory_id))
    return first_batch(
        after,
        [voter_record(v.node_id, v.directory_id, v.host, v.port) for v in members],
        max(known.number, 1) + 1,
        epoch_of_restored(after.epoch, generation_id),
        now_ms,
        Provenance(principal, OFFLINE, operation=OPERATION, reason=reason),
        names_voters=known.names_voters,
    )


def first_batch(
    after: LogMark,
    voters: Sequence[Voter],
    number: int,
    epoch: int,
    now_ms: int,
    who: Provenance,
    *,
    names_voters: bool = True,
) -> Batch:
    """Return the batch that begins generation `number` with these voters, in this order.

    `who`: who does it, and why. `names_voters`: whether the log has a record of the voters.
    """
    members = tuple(EpochVoter(voter.voter_id, voter.voter_directory_id) for voter in voters)
    records: list[Record] = [
        BeginEpochRecord(members[0].voter_id, members, ()),
        ClusterGenerationRecord(number, who.reason),
        *([VotersRecord(tuple(voters))] if names_voters else []),
    ]
    now_ms = max(now_ms, after.timestamp_ms)
    header = BatchHeader(after.log_end, len(records), epoch, now_ms, who, after.head)
    return seal(header, encode_records(records))


def _beginning(record: Record) -> bytes:
    """Return the bytes with which records of a kind begin: the tag, behind the array's head."""
    return encode_record(record)[1:6]


_GENERATION: Final = _beginning(ClusterGenerationRecord(0, ""))
_VOTERS: Final = _beginning(VotersRecord(()))
