"""Records of the bridge to a store that is moved here: who leads, and the source's brokers. Ours.

Rule: a batch that brings the source's changes holds a `BridgeRecord`, with the source's revision
that it reaches. So what is followed changes only together with the revision, and a log tells both.

KIP-500 and KIP-866 describe the move; ADR 0062 says what we do of it.
"""

from enum import IntEnum
from typing import ClassVar

from metadata.features import COORDINATION_FROM, LOGBERG_VERSION
from metadata.records.declaring import Columns, KnownNames, Need
from metadata.records.record import Codes, Record
from metadata.types import BrokerId, Int8, Int32, Int64

_NEEDS = (Need(LOGBERG_VERSION, COORDINATION_FROM),)


class BridgeMode(IntEnum):
    """Codes of `BridgeRecord.mode`."""

    NONE = 0
    """There is no bridge."""
    FOLLOWING = 1
    """The source leads. Here only the bridge changes what is followed."""
    LEADING = 2
    """The quorum leads, and the bridge writes each change back to the source."""
    FINALISED = 3
    """The quorum leads, and nothing reaches the source any more."""


class BridgeRecord(Record, frozen=True, tag=101400):
    """Says who leads, and how far the bridge has come (KIP-500, 866). Ours."""

    TYPE_ID: ClassVar[int] = 1014
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"mode": BridgeMode}
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"name": "source"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("bridge",)

    mode: Int8
    """A `BridgeMode`."""
    source: str
    """Its URL without credentials, such as zookeeper://zk1:2181/kafka."""
    source_cluster_id: str
    """What the source calls its cluster; empty: it doesn't say."""
    revision: Int64
    """The last change of the source that is here, such as ZooKeeper's zxid."""
    claim_epoch: Int32
    """The controller epoch under which the bridge holds the source's controller node; -1: it does
    not."""
    since_ms: Int64
    """When this mode began, in ms since 1970."""
    begun_by: str
    """The principal that began this mode."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return ("bridge:source",)


class LegacyBrokerRecord(Record, frozen=True, tag=101500):
    """A broker that is registered with the source; it has no session here (KIP-866). Ours."""

    TYPE_ID: ClassVar[int] = 1015
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"broker_id": "broker_id", "broker_epoch": "epoch"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("broker",)

    broker_id: BrokerId
    epoch: Int64
    """The source's revision at which it registered: ZooKeeper's czxid, Kafka's broker epoch."""
    endpoints: tuple[str, ...]
    """As the source writes them, such as PLAINTEXT://b1:9092."""
    rack: str | None
    remove: bool
    """True: it is registered there no more."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"broker:{self.broker_id}",)
