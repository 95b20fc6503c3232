"""Replies about brokers. `GET /v1/brokers`, `GET /v1/brokers/<id>`, `DELETE /v1/brokers/<id>`."""

from enum import StrEnum
from typing import Any

from metadata.messages.message import ReplyMessage


class BrokerStateName(StrEnum):
    """A broker's state, as people are shown it."""

    OFFLINE = "offline"
    """No contact within a session: shown, not stored."""
    FENCED = "fenced"
    ONLINE = "online"
    STOPPING = "stopping"


class EndpointDescription(ReplyMessage, frozen=True):
    """Where a node listens."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class FeatureDescription(ReplyMessage, frozen=True):
    """The levels of one feature that a node can work with."""

    name: str
    min_supported_version: int
    max_supported_version: int


class BrokerDescription(ReplyMessage, frozen=True):
    """One broker: its registration, and what the active controller hears of it."""

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
    leaders: int = 0
    """Partitions that it leads."""
    replicas: int = 0
    """Partitions that it holds a replica of."""
    last_contact_ms: int | None = None
    """Since its last call; None: unknown to the node that answers."""
    applied_offset: int | None = None
    """What it said that it has applied."""
    software: str | None = None
    """The release of its agent; None: not said (by 0.1), or not to the node that answers."""


class ListBrokersReply(ReplyMessage, frozen=True):
    """All brokers by id, from one image."""

    offset: int
    epoch: int
    brokers: tuple[BrokerDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """There are more: ask again with this as `continuation`; all pages are from one image."""


class DescribeBrokerReply(ReplyMessage, frozen=True):
    """One broker."""

    offset: int
    epoch: int
    broker: BrokerDescription
    age_ms: int | None = 0


class UnregisterBrokerReply(ReplyMessage, frozen=True):
    """The broker is forgotten."""

    broker_id: int
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
