"""MetadataFetch: registration, heartbeat and fetch of batches in one request (KIP-500).

`POST /v1/metadata/fetch`. Rule: the answer is a `MetadataFetchReply`. An error is in its field
`error`, and the HTTP status is that of the error. But if the request fails before the fetch is
decided (no authentication, a body that can't be read), the answer is an `ErrorReply`.
`metadata.messages.wire.decode_fetch_reply` reads both.
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
    """The state that a broker asks for."""

    FENCED = "fenced"
    ONLINE = "online"
    STOPPING = "stopping"


class SeenState(StrEnum):
    """The state that the controller has for a broker."""

    FENCED = "fenced"
    ONLINE = "online"
    STOPPING = "stopping"


class Endpoint(RequestMessage, frozen=True):
    """An address at which a broker listens; names are unique within a registration."""

    name: Annotated[str, Meta(min_length=1, max_length=249)]
    host: Annotated[str, Meta(min_length=1, max_length=253)]
    port: UInt16
    security_protocol: Int16 = 0
    """A `metadata.records.SecurityProtocol`."""


class SupportedFeature(RequestMessage, frozen=True):
    """The levels of one feature that a broker supports, both ends included."""

    name: Annotated[str, Meta(min_length=1, max_length=249)]
    min_supported_version: Int16
    max_supported_version: Int16


class Registration(RequestMessage, frozen=True, omit_defaults=True):
    """What a broker sends when it registers, or amends its registration."""

    endpoints: Annotated[tuple[Endpoint, ...], Meta(max_length=64)] = ()
    features: Annotated[tuple[SupportedFeature, ...], Meta(max_length=256)] = ()
    rack: Annotated[str, Meta(max_length=249)] | None = None
    log_dirs: Annotated[tuple[UuidText, ...], Meta(max_length=1024)] = ()
    """The directories that work (KIP-858)."""
    cordoned_log_dirs: Annotated[tuple[UuidText, ...], Meta(max_length=1024)] | None = None
    """From version 2 on: those of them that take no new replicas (KIP-1066); null: unknown."""
    previous_broker_epoch: Annotated[int, Meta(ge=-1, le=2**63 - 1)] = -1
    """From version 2 on: the epoch of the process before this one, if that one stopped in order
    and lost no write (KIP-966); else -1."""


class MetadataFetchRequest(RequestMessage, frozen=True, omit_defaults=True):
    """A broker's request: who it is, what it has applied, the state it asks for.

    The answer brings the batches that it does not have yet.
    """

    cluster_id: str
    broker_id: NodeId
    incarnation_id: UuidText
    """Drawn at each start of the broker's process."""
    broker_epoch: Annotated[int, Meta(ge=-1, le=2**63 - 1)] = -1
    """-1: the broker has none yet and sends its `registration`."""
    registration: Registration | None = None
    """With a broker epoch: the same incarnation amends its registration."""
    fetched_offset: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    """The broker has the records before this offset: send from here."""
    fetched_epoch: Annotated[int, Meta(ge=-1, le=2**31 - 1)] = -1
    """The epoch of the last record that the broker has; -1: it has none."""
    applied_offset: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    """The broker has published an image of the records before this offset."""
    wanted_state: WantedState = WantedState.FENCED
    max_bytes: Annotated[int, Meta(ge=0, le=64 * 1024 * 1024)] = MAX_BYTES_DEFAULT
    """The most bytes of batches; the first batch may be longer."""
    max_wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 0
    """How long the controller may hold the request while it has nothing new."""
    offline_log_dirs: Annotated[tuple[UuidText, ...], Meta(max_length=1024)] = ()
    """From version 2 on: directories that have failed since the registration (KIP-858)."""
    cordoned_log_dirs: Annotated[tuple[UuidText, ...], Meta(max_length=1024)] | None = None
    """From version 2 on: directories that take no new replicas (KIP-1066); null: unchanged."""
    software: Annotated[str, Meta(max_length=64)] | None = None
    """The agent's release, for people; from version 2 on."""


class SnapshotToLoad(ReplyMessage, frozen=True):
    """The snapshot to load instead of batches: `GET /v1/snapshots/<id>`, in ranges."""

    id: str
    """`<offset, 20 digits>-<epoch, 10 digits>`."""
    size: Count
    """In bytes."""


class Divergence(ReplyMessage, frozen=True):
    """The broker's log differs from the leader's: `epoch` ends at `end_offset` in the leader's."""

    epoch: Int32
    end_offset: Int64


class StateAt(ReplyMessage, frozen=True):
    """The hashes of log and image at the end of a batch. The broker compares them with its own."""

    offset: Int64
    """The end offset of the batch; the image's offset."""
    chain_hash: Digest
    state_hash: Digest
    """The sum over the records that brokers share: 32 bytes, big-endian."""


class MetadataFetchReply(ReplyMessage, frozen=True):
    """The broker's state, and the batches, or the snapshot, that it does not have yet."""

    error: ErrorReply | None = None
    broker_epoch: Int64 = -1
    """The offset of this broker's registration; -1: not registered."""
    state: SeenState = SeenState.FENCED
    may_stop: bool = False
    """The broker's leaders have moved and every active broker has applied that: it may stop."""
    caught_up: bool = False
    """The broker has applied its own registration."""
    leader_id: int | None = None
    leader_epoch: Int32 = -1
    leader_url: str | None = None
    high_watermark: Int64 = -1
    """Every record before it is committed; -1: unknown."""
    batches: tuple[bytes, ...] = ()
    """Each as the bytes in the ledger, from the fetched offset on, all below the high watermark."""
    snapshot: SnapshotToLoad | None = None
    diverging: Divergence | None = None
    state_hash: StateAt | None = None
    """The newest hashes that the controller has at or before the end of the last batch."""
    session_timeout_ms: Annotated[int, Meta(ge=-1)] = -1
    """How long the controller waits before it fences a silent broker; -1: unknown."""
