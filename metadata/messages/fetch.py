"""MetadataFetch: registration, heartbeat and fetch of deltas in one call (KIP-500).

`POST /v1/metadata/fetch`. Rule: whatever the fetch itself decides is a `MetadataFetchReply`, its
errors too, with the HTTP status of the error; what stands before it (authentication, a body that
can't be read) answers with a bare `ErrorReply`. `metadata.messages.wire.decode_fetch_reply` reads
both as one.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.message import Count, ReplyMessage, RequestMessage, UuidText
from metadata.types import Digest, Int16, Int32, Int64, UInt16

NodeId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
MAX_BYTES_DEFAULT = 1024 * 1024


class WantedState(StrEnum):
    """What a broker asks to be."""

    FENCED = "fenced"
    ONLINE = "online"
    STOPPING = "stopping"


class SeenState(StrEnum):
    """What a broker is, as the controller sees it."""

    FENCED = "fenced"
    ONLINE = "online"
    STOPPING = "stopping"


class Endpoint(RequestMessage, frozen=True):
    """Where a broker listens; names are unique within a registration."""

    name: Annotated[str, Meta(min_length=1, max_length=249)]
    host: Annotated[str, Meta(min_length=1, max_length=253)]
    port: UInt16
    security_protocol: Int16 = 0
    """A `metadata.records.SecurityProtocol`."""


class SupportedFeature(RequestMessage, frozen=True):
    """The levels of one feature that a broker can work with, both ends included."""

    name: Annotated[str, Meta(min_length=1, max_length=249)]
    min_supported_version: Int16
    max_supported_version: Int16


class Registration(RequestMessage, frozen=True):
    """What a broker says of itself when it registers, or amends its registration."""

    endpoints: Annotated[tuple[Endpoint, ...], Meta(max_length=64)] = ()
    features: Annotated[tuple[SupportedFeature, ...], Meta(max_length=256)] = ()
    rack: Annotated[str, Meta(max_length=249)] | None = None
    log_dirs: Annotated[tuple[UuidText, ...], Meta(max_length=1024)] = ()


class MetadataFetchRequest(RequestMessage, frozen=True, omit_defaults=True):
    """A broker's one call: I am here, I have this much, I want to be that, give me what is new."""

    cluster_id: str
    broker_id: NodeId
    incarnation_id: UuidText
    """Drawn at each start of the broker's process."""
    broker_epoch: Annotated[int, Meta(ge=-1, le=2**63 - 1)] = -1
    """-1: none yet; then `registration` says who I am."""
    registration: Registration | None = None
    """With an epoch: the same incarnation amends its registration."""
    fetched_offset: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    """Records before this offset are on my disk: send from here."""
    fetched_epoch: Annotated[int, Meta(ge=-1, le=2**31 - 1)] = -1
    """The epoch of the last of them; -1: I have none."""
    applied_offset: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    """My image is that of all records before this offset, and has been published."""
    wanted_state: WantedState = WantedState.FENCED
    max_bytes: Annotated[int, Meta(ge=0, le=64 * 1024 * 1024)] = MAX_BYTES_DEFAULT
    """Of batches; one batch comes whatever this says."""
    max_wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 0
    """How long to hold the request while there is nothing to say."""
    software: Annotated[str, Meta(max_length=64)] | None = None
    """From version 2 on: the release of the agent, shown beside the broker."""


class SnapshotToLoad(ReplyMessage, frozen=True):
    """Load this instead of batches: `GET /v1/snapshots/<id>`, by ranges."""

    id: str
    """`<offset, 20 digits>-<epoch, 10 digits>`."""
    size: Count
    """In bytes."""


class Divergence(ReplyMessage, frozen=True):
    """The histories part: of `epoch`, the leader has records before `end_offset` only."""

    epoch: Int32
    end_offset: Int64


class StateAt(ReplyMessage, frozen=True):
    """What the log and the image were at the end of a batch, to compare with one's own."""

    offset: Int64
    """The end offset of the batch; the image's offset."""
    chain_hash: Digest
    state_hash: Digest
    """The sum over what brokers share, 32 bytes, big-endian."""


class MetadataFetchReply(ReplyMessage, frozen=True):
    """What the controller knows that the broker doesn't."""

    error: ErrorReply | None = None
    broker_epoch: Int64 = -1
    """The offset of this broker's registration; -1: not registered."""
    state: SeenState = SeenState.FENCED
    may_stop: bool = False
    """The leaders have moved and every active broker knows: the process may end."""
    caught_up: bool = False
    """The broker has applied its own registration."""
    leader_id: int | None = None
    leader_epoch: Int32 = -1
    leader_url: str | None = None
    high_watermark: Int64 = -1
    """Every record before it is committed; -1: not said."""
    batches: tuple[bytes, ...] = ()
    """As they stand on disk, from the fetched offset on, all below the high watermark."""
    snapshot: SnapshotToLoad | None = None
    diverging: Divergence | None = None
    state_hash: StateAt | None = None
    """The newest that is at or before the end of the last batch."""
    session_timeout_ms: Annotated[int, Meta(ge=-1)] = -1
    """How long the controller waits before it fences a silent broker; -1: not said."""
