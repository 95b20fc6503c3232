"""Replies about brokers. `GET /v1/brokers`, `GET /v1/brokers/<id>`, `DELETE /v1/brokers/<id>`."""

from enum import StrEnum
from typing import Any

from metadata.messages.message import ReplyMessage


class BrokerStateName(StrEnum):
    """A broker's state in answers."""

    OFFLINE = "offline"
    """No contact within a session. This state is in answers only, never in the log."""
    FENCED = "fenced"
    ONLINE = "online"
    STOPPING = "stopping"


class EndpointDescription(ReplyMessage, frozen=True):
    """An address at which a node listens."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class FeatureDescription(ReplyMessage, frozen=True):
    """The levels of one feature that a node supports, both ends included."""

    name: str
    min_supported_version: int
    max_supported_version: int


class BrokerDescription(ReplyMessage, frozen=True):
    """One broker: its registration, and what the active controller knows of it."""

    broker_id: int
    broker_epoch: int
    incarnation_id: str
    state: BrokerStateName
    fenced: bool
    in_controlled_shutdown: bool
    endpoints: tuple[EndpointDescription, ...] = ()
    features: tuple[FeatureDescription, ...] = ()
    rack: str | None = None
    log_dirs: tuple[str, ...] = ()
    cordoned_log_dirs: tuple[str, ...] = ()
    """Those of them that take no new replicas (KIP-1066)."""
    leaders: int = 0
    """How many partitions it leads."""
    replicas: int = 0
    """How many partitions have a replica on it."""
    last_contact_ms: int | None = None
    """Milliseconds since its last request; None: the node that answers doesn't know."""
    applied_offset: int | None = None
    """It has applied the records below this offset, as it last reported."""
    software: str | None = None
    """The release of its agent; None: the agent doesn't report it (0.1), or the node that answers
    doesn't know."""


class ListBrokersReply(ReplyMessage, frozen=True):
    """The brokers, sorted by id, from one image."""

    offset: int
    epoch: int
    brokers: tuple[BrokerDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there are more: ask again with it as `continuation`. All pages are from one image."""


class DescribeBrokerReply(ReplyMessage, frozen=True):
    """One broker."""

    offset: int
    epoch: int
    broker: BrokerDescription
    age_ms: int | None = 0


class UnregisterBrokerReply(ReplyMessage, frozen=True):
    """The broker's registration is removed."""

    broker_id: int
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
