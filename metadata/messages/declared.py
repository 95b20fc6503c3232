"""Declared state. `POST /v1/apply` makes it so, `GET /v1/export` reads it.

Rule: an apply is all or nothing. The controller compares what is declared with the state at one
offset. It writes all differences as one transaction, or nothing and the error of each refused item.
What is not declared stays as it is, unless `prune` names its kind.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta, field

from metadata.messages.acls import AclDescription, AclEntry
from metadata.messages.errors import ErrorReply
from metadata.messages.message import Count, ReplyMessage, RequestMessage
from metadata.messages.quotas import EntityQuotas, QuotaEntityPart
from metadata.messages.scram import UserDescription
from metadata.types import BrokerId, Int16, Int32

DECLARED_PER_REQUEST: Final = 10_000
"""The most entries of one kind."""
DEFAULT_ITERATIONS: Final = 8_192
"""Of a new SCRAM credential that doesn't say how many."""
_Secret = Annotated[bytes, Meta(max_length=256)]
_Key = Annotated[str, Meta(min_length=1, max_length=1000)]
_Values = Annotated[dict[_Key, str | None], Meta(max_length=DECLARED_PER_REQUEST)]


class DeclaredKind(StrEnum):
    """What can be declared."""

    TOPICS = "topics"
    CONFIGS = "configs"
    QUOTAS = "quotas"
    ACLS = "acls"
    USERS = "users"


class DeclaredTopic(RequestMessage, frozen=True):
    """A topic that shall exist. What is not given stays as it is, or is the default if it's new."""

    name: str
    partitions: Int32 | None = None
    """At least so many exist now, or they are added. Partitions can't be taken away."""
    replication_factor: Int16 | None = None
    assignments: tuple[tuple[BrokerId, ...], ...] = ()
    """The brokers of each partition, in order; then `partitions` and `replication_factor` are not
    given."""
    configs: _Values = field(default_factory=dict)
    """null: the topic has no value of its own."""


class DeclaredConfigs(RequestMessage, frozen=True):
    """The configs of a broker, of all brokers, of a group or of a client-metrics subscription."""

    resource_type: str
    """broker, group or client-metrics. A topic's configs stand with the topic."""
    resource_name: str
    """`default` with broker: the default of all brokers."""
    configs: _Values = field(default_factory=dict)


class DeclaredQuotas(RequestMessage, frozen=True):
    """The quotas of one entity."""

    entity: Annotated[tuple[QuotaEntityPart, ...], Meta(max_length=3)]
    quotas: Annotated[dict[str, float | None], Meta(max_length=16)] = field(default_factory=dict)
    """null: the entity has no such quota."""


class DeclaredCredential(RequestMessage, frozen=True):
    """A SCRAM credential that shall exist. One that exists keeps its password without `rewrite`."""

    name: str
    mechanism: str
    iterations: Int32 | None = None
    salt: _Secret = b""
    salted_password: _Secret = b""
    """Empty: the request can't set the credential. A dry run doesn't need it."""
    rewrite: bool = False
    """Set the credential even if it exists."""

    def __repr__(self) -> str:
        return f"DeclaredCredential({self.name!r}, {self.mechanism!r}, {self.iterations})"


class ApplyRequest(RequestMessage, frozen=True):
    """Make this so."""

    topics: Annotated[tuple[DeclaredTopic, ...], Meta(max_length=DECLARED_PER_REQUEST)] = ()
    configs: Annotated[tuple[DeclaredConfigs, ...], Meta(max_length=DECLARED_PER_REQUEST)] = ()
    quotas: Annotated[tuple[DeclaredQuotas, ...], Meta(max_length=DECLARED_PER_REQUEST)] = ()
    acls: Annotated[tuple[AclEntry, ...], Meta(max_length=DECLARED_PER_REQUEST)] = ()
    users: Annotated[tuple[DeclaredCredential, ...], Meta(max_length=DECLARED_PER_REQUEST)] = ()
    prune: Annotated[tuple[DeclaredKind, ...], Meta(max_length=16)] = ()
    """Remove what is not declared of these kinds. For topics: configs of the declared topics."""
    delete_topics: bool = False
    """With `prune` of topics: delete the topics that are not declared, and all their data."""
    expected_plan: Annotated[str, Meta(max_length=64)] | None = None
    """The `plan` of a dry run. The controller refuses if the plan would be another one now."""
    dry_run: bool = False


class Difference(ReplyMessage, frozen=True):
    """One value that is not as declared."""

    name: str
    """Such as partitions, or a config's key."""
    before: str | None
    """null: there is none. `(hidden)`: it is never shown."""
    after: str | None
    """null: it is removed."""


class PlannedItem(ReplyMessage, frozen=True):
    """One thing that differs from what is declared, or that is refused."""

    kind: str
    """topic, configs, quotas, acl or user."""
    name: str
    action: str
    """create, change or remove; none if it only has an `error`."""
    differences: tuple[Difference, ...] = ()
    error: ErrorReply | None = None
    """Why this can't be done. Then nothing is done."""


class ApplyReply(ReplyMessage, frozen=True):
    """The plan, and the log's end after the change."""

    items: tuple[PlannedItem, ...] = ()
    """What differs, in the order of the kinds and of the request. After a change with a long plan
    (64 KiB) it is empty: the dry run has the whole plan."""
    plan: str = ""
    """A digest of the plan. Equal plans have equal digests."""
    created: Count = 0
    changed: Count = 0
    removed: Count = 0
    unchanged: Count = 0
    """How many declared things are as declared."""
    refused: Count = 0
    """How many items have an error. If there is one, nothing was written."""
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
    """With `dry_run`: the records that would be written; see `metadata.messages.records_json`."""


class ExportedTopic(ReplyMessage, frozen=True):
    """A topic as one declares it."""

    name: str
    partitions: Count
    replication_factor: Count
    """Of its first partition. During a reassignment: after it."""
    configs: dict[str, str] = field(default_factory=dict)
    assignments: tuple[tuple[int, ...], ...] = ()
    """The brokers of each partition, if they were asked for. During a reassignment: after it."""


class ExportedConfigs(ReplyMessage, frozen=True):
    """The configs of a resource that is no topic."""

    resource_type: str
    resource_name: str
    configs: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    """Keys whose values are never shown."""


class ExportReply(ReplyMessage, frozen=True):
    """A part of the declared state. All pages are from one image."""

    offset: int
    epoch: int
    topics: tuple[ExportedTopic, ...] = ()
    configs: tuple[ExportedConfigs, ...] = ()
    quotas: tuple[EntityQuotas, ...] = ()
    acls: tuple[AclDescription, ...] = ()
    users: tuple[UserDescription, ...] = ()
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there are more: ask again with it as `continuation`. A user's credentials may lie on
    two pages."""
