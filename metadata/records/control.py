"""Records about the quorum itself. They have offsets in the log like all other records.

Rule: Kafka's control types 2, 5 and 6 have the ids 2002, 2005 and 2006 here. Their field `Version`
is left out, because it equals the schema's version, which is our `VERSION`. Kafka's types 3 and 4,
the first and last record of a snapshot, are not records here; a checkpoint's header and footer hold
the same. The cluster generation, 1002, and the cluster key, 1006, are our own records.
"""

from typing import ClassVar

from metadata.features import LOGBERG_VERSION, NAMED_KEY_FROM
from metadata.records.declaring import KnownNames, Need, Privileged, metadata_level
from metadata.records.record import Part, Record
from metadata.types import BrokerId, Int16, Int32, UInt16, Uuid


class EpochVoter(Part, frozen=True):
    """A voter in a BeginEpochRecord. The same id with another directory id is another voter."""

    voter_id: BrokerId
    voter_directory_id: Uuid


class BeginEpochRecord(Record, frozen=True, tag=200201):
    """Begins an epoch, and names its leader (KIP-595, 853; Kafka's LeaderChangeMessage).

    It is the first record of every epoch. It discards a transaction that an earlier epoch left
    open.
    """

    TYPE_ID: ClassVar[int] = 2002
    VERSION: ClassVar[int] = 1
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)

    leader_id: BrokerId
    voters: tuple[EpochVoter, ...]
    granting_voters: tuple[EpochVoter, ...]


class KRaftVersionRecord(Record, frozen=True, tag=200500):
    """Sets the version of the quorum's protocol (KIP-853). From 1 on, the log holds the voters."""

    TYPE_ID: ClassVar[int] = 2005
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(21)
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("feature")
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("feature", "quorum")

    k_raft_version: Int16

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return ("feature:kraft.version", "quorum")


class VoterEndpoint(Part, frozen=True):
    """An address at which a voter listens."""

    name: str
    host: str
    port: UInt16


class VoterKRaftVersions(Part, frozen=True):
    """The levels of kraft.version that a voter supports (Kafka's KRaftVersionFeature)."""

    min_supported_version: Int16
    max_supported_version: Int16


class Voter(Part, frozen=True):
    """A voter of the quorum, with its addresses."""

    voter_id: BrokerId
    voter_directory_id: Uuid
    endpoints: tuple[VoterEndpoint, ...]
    k_raft_version_feature: VoterKRaftVersions


class VotersRecord(Record, frozen=True, tag=200600):
    """Sets the voters of the quorum: all of them (KIP-853)."""

    TYPE_ID: ClassVar[int] = 2006
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(21)
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("voters")
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)

    voters: tuple[Voter, ...]


class ClusterGenerationRecord(Record, frozen=True, tag=100200):
    """Begins the cluster, or a new generation after its recovery from what survived. Ours.

    A node of an older generation must not rejoin.
    """

    TYPE_ID: ClassVar[int] = 1002
    VERSION: ClassVar[int] = 0
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("voters")
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)

    generation: Int32
    """1 at the cluster's first start; each recovery adds 1."""
    reason: str
    """What happened, as a sentence; empty at the first start."""


class ClusterKeyRecord(Record, frozen=True, tag=100600):
    """Names the key under which secrets are sealed from here on (ADR 0031, 0039). Ours.

    The key itself is never in the log. A controller with another key does not lead.
    """

    TYPE_ID: ClassVar[int] = 1006
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = (Need(LOGBERG_VERSION, NAMED_KEY_FROM),)
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("key")
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)

    key_id: bytes
    """The first 8 bytes of a hash of the key, as in each sealed block."""
