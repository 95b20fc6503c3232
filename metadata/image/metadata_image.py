"""The image: all metadata up to an offset, immutable.

Rule: the image is a function of the records [0, offset) and of nothing else. While a transaction is
open, its records are in `transaction.branch`, and all other fields hold the state before it
(KIP-868).
"""

from typing import Any

import msgspec

from metadata.image.acls import EMPTY_ACLS, AclsImage
from metadata.image.attempts import EMPTY_ATTEMPTS, AttemptsImage
from metadata.image.bridge import EMPTY_BRIDGE, BridgeImage
from metadata.image.client_quotas import EMPTY_CLIENT_QUOTAS, ClientQuotasImage
from metadata.image.cluster import EMPTY_CLUSTER, ClusterImage
from metadata.image.configs import EMPTY_CONFIGS, ConfigsImage
from metadata.image.coordination import EMPTY_COORDINATION, CoordinationImage
from metadata.image.credentials import EMPTY_CREDENTIALS, CredentialsImage
from metadata.image.erasures import EMPTY_ERASURES, ErasuresImage
from metadata.image.families import TABLES
from metadata.image.features import EMPTY_FEATURES, FeaturesImage
from metadata.image.heads import EMPTY_HEADS, HeadsImage
from metadata.image.outcomes import EMPTY_OUTCOMES, OutcomesImage
from metadata.image.producer_ids import EMPTY_PRODUCER_IDS, ProducerIdsImage
from metadata.image.quorum import EMPTY_QUORUM, QuorumImage
from metadata.image.scram import EMPTY_SCRAM, ScramImage
from metadata.image.table import ImageTable
from metadata.image.tokens import EMPTY_TOKENS, TokensImage
from metadata.image.topics import EMPTY_TOPICS, TopicsImage
from metadata.state_hash import StateHash, part_of


class OpenTransaction(msgspec.Struct, frozen=True):
    """A transaction that has begun and not ended."""

    name: str | None
    offset: int
    """The offset of the Begin record. Readers see only the state before it."""
    branch: "MetadataImage"
    """The state that would hold if the transaction ended now."""
    built: bool = True
    """False: `branch` is only the state before the Begin, because the controller that writes a
    large transaction does not need more. To build it, replay the transaction from `rewound`."""


class MetadataImage(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """All metadata up to `offset`."""

    offset: int = 0
    """The offset after the last record: the image holds the records [0, offset)."""
    epoch: int = 0
    """The epoch of the last batch; 0 before the first."""
    timestamp_ms: int = 0
    """The timestamp of the last batch, in ms since 1970; 0 before the first."""
    features: FeaturesImage = EMPTY_FEATURES
    quorum: QuorumImage = EMPTY_QUORUM
    heads: HeadsImage = EMPTY_HEADS
    cluster: ClusterImage = EMPTY_CLUSTER
    topics: TopicsImage = EMPTY_TOPICS
    configs: ConfigsImage = EMPTY_CONFIGS
    client_quotas: ClientQuotasImage = EMPTY_CLIENT_QUOTAS
    producer_ids: ProducerIdsImage = EMPTY_PRODUCER_IDS
    acls: AclsImage = EMPTY_ACLS
    scram: ScramImage = EMPTY_SCRAM
    tokens: TokensImage = EMPTY_TOKENS
    erasures: ErasuresImage = EMPTY_ERASURES
    credentials: CredentialsImage = EMPTY_CREDENTIALS
    coordination: CoordinationImage = EMPTY_COORDINATION
    bridge: BridgeImage = EMPTY_BRIDGE
    attempts: AttemptsImage = EMPTY_ATTEMPTS
    outcomes: OutcomesImage = EMPTY_OUTCOMES
    transaction: OpenTransaction | None = None
    state_hash: StateHash | None = StateHash()
    """None if it was not computed (`MetadataDelta(..., with_state_hash=False)`)."""
    interned: dict[Any, Any] = {}
    """Maps a tuple or uuid to the one object that stands for all its equals. The images of one
    history share it. It is not part of the state."""

    def table(self, table: ImageTable) -> Any:
        """Return the map of a table."""
        return getattr(getattr(self, table.family), table.map)

    def rewound(self) -> "MetadataImage":
        """Return the image before the Begin of the open transaction."""
        assert self.transaction is not None
        return msgspec.structs.replace(self, offset=self.transaction.offset, transaction=None)

    def without_branch(self) -> "MetadataImage":
        """Return the image with a branch that was not built marked as built.

        Only for a caller that discards the branch, because the next record is a BeginEpoch.
        """
        if self.transaction is None or self.transaction.built:
            return self
        return msgspec.structs.replace(
            self, transaction=msgspec.structs.replace(self.transaction, built=True)
        )

    def same_state(self, other: "MetadataImage") -> bool:
        """Return whether all families and an open transaction are equal, whatever the offsets.

        A branch that was not built is not compared.
        """
        if any(self.table(table) != other.table(table) for table in TABLES):
            return False
        mine, theirs = self.transaction, other.transaction
        if mine is None or theirs is None:
            return mine is theirs
        if (mine.name, mine.offset) != (theirs.name, theirs.offset):
            return False
        return not (mine.built and theirs.built) or mine.branch.same_state(theirs.branch)

    def same_derived(self, other: "MetadataImage") -> bool:
        """Return whether the derived maps are equal too. They must be if the state is equal."""
        return all(
            getattr(self, family) == getattr(other, family)
            for family in ("cluster", "topics", "outcomes", "acls", "coordination", "credentials")
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetadataImage):
            return NotImplemented
        return (
            (self.offset, self.epoch, self.timestamp_ms)
            == (other.offset, other.epoch, other.timestamp_ms)
            and self.same_state(other)
            and self.same_derived(other)
        )

    __hash__ = None  # type: ignore[assignment]


EMPTY = MetadataImage()
"""The image before the first record."""


def hash_from_scratch(image: MetadataImage) -> StateHash:
    """Return the state hash of an image, computed anew. It equals the one that deltas update."""
    sums = [0, 0]
    for table in TABLES:
        for key, value in image.table(table).unordered_items():
            sums[table.controllers_only] += part_of(table.records(key, value))
    return StateHash().plus(*sums)
