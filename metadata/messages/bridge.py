"""The bridge to a store that is moved here (KIP-500, 866): who leads, and the source's changes.

Rule: each step names the source's revision that it begins at and the one that it reaches. A step
that begins elsewhere is refused. So two bridges at once can't mix their steps, and a lost answer is
found out by asking again.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from metadata.messages.imports import IMPORT_BYTES_MAX, ImportConflict
from metadata.messages.message import Count, ReplyMessage, RequestMessage
from metadata.types import Int32, Int64

BridgeFamily = Literal[
    "topics", "brokerConfigs", "quotas", "users", "acls", "tokens", "producerIds"
]
"""What is followed, by kind."""
BridgeModeName = Literal["none", "following", "leading", "finalised"]
SourceUrl = Annotated[str, Meta(min_length=1, max_length=500)]


class LegacyBroker(RequestMessage, frozen=True):
    """A broker that is registered with the source."""

    broker_id: Int32
    epoch: Int64
    """The source's revision at which it registered: ZooKeeper's czxid."""
    endpoints: tuple[str, ...] = ()
    rack: str | None = None


class FollowSourceRequest(RequestMessage, frozen=True):
    """Bring the quorum to a revision of the source. The first one begins the bridge."""

    source: SourceUrl
    """Without a password, such as zookeeper://zk1:2181/kafka."""
    source_cluster_id: str
    from_revision: Int64
    """What the last step reached; -1: this is the first."""
    revision: Int64
    records: Annotated[bytes, Meta(max_length=IMPORT_BYTES_MAX)] = b"\x90"
    """A MessagePack array, as an import has it: what changed, as it is now. A topic comes with all
    its configs and partitions."""
    complete: tuple[BridgeFamily, ...] = ()
    """Families of which the records are everything: what is not among them, is removed."""
    topics_gone: tuple[str, ...] = ()
    """Topics to remove, for a step whose topics aren't complete."""
    brokers: tuple[LegacyBroker, ...] | None = None
    """All brokers that are registered with the source; None: they are as they were."""
    dry_run: bool = False

    def __repr__(self) -> str:
        return f"FollowSourceRequest({self.source!r}, {self.revision}, {len(self.records)} bytes)"


class FollowSourceReply(ReplyMessage, frozen=True):
    """What a step changed."""

    mode: str = ""
    revision: int = -1
    """What the bridge has reached."""
    changed: Count = 0
    """How many records were written, but for those of the bridge itself."""
    conflicts: tuple[ImportConflict, ...] = ()
    """The first 1,000. If there is one, nothing is written."""
    conflict_count: Count = 0
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class SetBridgeModeRequest(RequestMessage, frozen=True):
    """Let the quorum lead, end the bridge for good, or give it up."""

    mode: Literal["none", "leading", "finalised"]
    source: SourceUrl
    revision: Int64
    """What the bridge must have reached: another one is refused."""
    claim_epoch: Int32 = -1
    """With `leading`: the controller epoch of the claim in the source."""
    dry_run: bool = False


class SetBridgeModeReply(ReplyMessage, frozen=True):
    """The bridge as it is now."""

    mode: str = ""
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class LegacyBrokerDescription(ReplyMessage, frozen=True):
    """A broker that is registered with the source, and has no session here."""

    broker_id: int
    epoch: int
    endpoints: tuple[str, ...]
    rack: str | None = None


class DescribeBridgeReply(ReplyMessage, frozen=True):
    """Who leads, and how far the bridge has come."""

    offset: int
    mode: str
    source: str | None = None
    source_cluster_id: str = ""
    revision: int = -1
    """The last change of the source that is here; -1: there never was a bridge."""
    claim_epoch: int = -1
    since_ms: int = 0
    begun_by: str = ""
    brokers: tuple[LegacyBrokerDescription, ...] = ()
