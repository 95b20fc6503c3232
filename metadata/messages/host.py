"""What a host and the agent's process beside it say to each other: `/v1/host/…` (ADR 0040).

The host is the broker. If it is not written in Python, it runs beside an agent's process and asks
it over a unix socket.
"""

from typing import Annotated

from msgspec import Meta

from metadata.messages.directories import REPLICAS_PER_REQUEST, ReplicaInDirectory
from metadata.messages.message import ReplyMessage, RequestMessage, UuidText
from metadata.types import Int32, Int64

PRODUCER_IDS_PER_REQUEST = 1_000
_DIRECTORIES_MAX = 1_000
_Directories = Annotated[tuple[UuidText, ...], Meta(max_length=_DIRECTORIES_MAX)]


class TakeProducerIdsRequest(RequestMessage, frozen=True):
    """Take ids for idempotent producers."""

    count: Annotated[int, Meta(ge=1, le=PRODUCER_IDS_PER_REQUEST)] = 1


class TakeProducerIdsReply(ReplyMessage, frozen=True):
    """Ids that no producer of the cluster has had or will have."""

    producer_ids: tuple[Int64, ...]
    """At least one; fewer than asked if the block ends."""


class PlaceReplicasRequest(RequestMessage, frozen=True):
    """In which of the broker's log directories these replicas lie."""

    replicas: Annotated[
        tuple[ReplicaInDirectory, ...], Meta(min_length=1, max_length=REPLICAS_PER_REQUEST)
    ]


class SetLogDirsRequest(RequestMessage, frozen=True):
    """Which log directories have failed, and which take no new replicas. Replaces what was said."""

    failed: _Directories = ()
    cordoned: _Directories | None = None
    """null: say nothing of them."""


class HostDirectories(ReplyMessage, frozen=True):
    """The broker's log directories, by id."""

    log_dirs: tuple[str, ...]
    failed: tuple[str, ...]
    cordoned: tuple[str, ...] | None
    waiting: int
    """Replicas whose directory a controller has not confirmed yet."""


class ScramSecret(ReplyMessage, frozen=True):
    """What verifies a user's SCRAM login (RFC 5802). Its text shows no secret."""

    salt: bytes
    iterations: Int32
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramSecret(iterations={self.iterations}, ***)"


class TokenSecret(ReplyMessage, frozen=True):
    """A delegation token with its secret. Its text does not show the secret."""

    token_id: str
    owner: str
    expiry_ms: Int64
    hmac: bytes

    def __repr__(self) -> str:
        return f"TokenSecret({self.token_id!r}, owner={self.owner!r}, ***)"


class ConfigSecret(ReplyMessage, frozen=True):
    """A config of a resource, opened if it lies sealed. Its text does not show the value."""

    value: str | None
    """null: the resource has no value of its own."""

    def __repr__(self) -> str:
        return "ConfigSecret(***)"
