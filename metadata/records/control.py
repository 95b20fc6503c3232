"""Control facts: what the quorum says of itself, in the same log and with offsets of its own.

Rule: Kafka's control types 2, 5 and 6 have the ids 2002, 2005 and 2006 here. Their field `Version`
is left out: it always says the schema's version, which our `VERSION` says. Kafka's types 3 and 4,
the first and last record of a snapshot, are not records here: a checkpoint's header and footer
say what they say. The cluster generation is ours: 1002.
"""

from typing import ClassVar

from metadata.records.declaring import KnownNames, Need, Privileged, metadata_level
from metadata.records.record import Part, Record
from metadata.types import BrokerId, Int16, Int32, UInt16, Uuid


class EpochVoter(Part, frozen=True):
    """A member of the quorum, as BeginEpoch names it; another directory is another voter."""

    voter_id: BrokerId
    voter_directory_id: Uuid


class BeginEpochRecord(Record, frozen=True, tag=200201):
    """The first record of every epoch: who leads it (KIP-595, 853; Kafka's LeaderChangeMessage).

    It discards a transaction that an earlier epoch left open.
    """

    TYPE_ID: ClassVar[int] = 2002
    VERSION: ClassVar[int] = 1
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)

    leader_id: BrokerId
    voters: tuple[EpochVoter, ...]
    granting_voters: tuple[EpochVoter, ...]


class KRaftVersionRecord(Record, frozen=True, tag=200500):
    """The version of the quorum's own protocol (KIP-853): 1 has voters in the log."""

    TYPE_ID: ClassVar[int] = 2005
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(21)
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("feature")
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("feature",)

    k_raft_version: Int16

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return ("feature:kraft.version",)


class VoterEndpoint(Part, frozen=True):
    """Where a voter listens."""

    name: str
    host: str
    port: UInt16


class VoterKRaftVersions(Part, frozen=True):
    """The levels of kraft.version that a voter can work with (Kafka's KRaftVersionFeature)."""

    min_supported_version: Int16
    max_supported_version: Int16


class Voter(Part, frozen=True):
    """A member of the quorum, and where it is found."""

    voter_id: BrokerId
    voter_directory_id: Uuid
    endpoints: tuple[VoterEndpoint, ...]
    k_raft_version_feature: VoterKRaftVersions


class VotersRecord(Record, frozen=True, tag=200600):
    """All members of the quorum from here on (KIP-853)."""

    TYPE_ID: ClassVar[int] = 2006
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(21)
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("voters")
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)

    voters: tuple[Voter, ...]


class ClusterGenerationRecord(Record, frozen=True, tag=100200):
    """The cluster has begun, or was recovered from what survived. Ours.

    A node of an older generation must not rejoin.
    """

    TYPE_ID: ClassVar[int] = 1002
    VERSION: ClassVar[int] = 0
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("voters")
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)

    generation: Int32
    """1 at the cluster's first start; one more at each recovery."""
    reason: str
    """A sentence: what happened; empty at the first start."""
