"""Access control entries. `POST`, `GET`, `DELETE /v1/acls`, `GET /v1/acls/check` (KIP-140, 801).

Rule: types, operations and permissions are Kafka's names, such as TOPIC and READ. The controller
checks them, and decides each entry by itself. The results have the order of the request.
"""

from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.message import Count, ReplyMessage, RequestMessage

ACLS_PER_REQUEST = 2_000
FILTERS_PER_REQUEST = 100


class AclEntry(RequestMessage, frozen=True):
    """What one principal may do, or may not do, to the resources of one pattern."""

    resource_type: str
    """TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER."""
    resource_name: str
    """`*`: every resource of the type. CLUSTER has one name, `kafka-cluster`."""
    principal: str
    """Such as User:alice; `User:*` is everybody."""
    operation: str
    """READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, ALL and others of Kafka's."""
    pattern_type: str = "LITERAL"
    """LITERAL or PREFIXED."""
    host: str = "*"
    """The address that the principal calls from; `*`: every address."""
    permission_type: str = "ALLOW"
    """ALLOW or DENY."""


class AclFilter(RequestMessage, frozen=True):
    """Selects entries. A field that is not given matches every entry."""

    resource_type: str = "ANY"
    resource_name: str | None = None
    pattern_type: str = "ANY"
    """ANY; LITERAL, PREFIXED; or MATCH: every pattern that the resource name matches (KIP-290)."""
    principal: str | None = None
    host: str | None = None
    operation: str = "ANY"
    permission_type: str = "ANY"


class CreateAclsRequest(RequestMessage, frozen=True):
    """Add these entries. An entry that exists already is not added a second time."""

    acls: Annotated[tuple[AclEntry, ...], Meta(min_length=1, max_length=ACLS_PER_REQUEST)]
    dry_run: bool = False


class DeleteAclsRequest(RequestMessage, frozen=True):
    """Remove all entries that match one of these filters."""

    filters: Annotated[tuple[AclFilter, ...], Meta(min_length=1, max_length=FILTERS_PER_REQUEST)]
    dry_run: bool = False


class AclDescription(ReplyMessage, frozen=True):
    """One entry."""

    id: str
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


class CreatedAcl(ReplyMessage, frozen=True):
    """The result for one entry of a CreateAclsRequest."""

    error: ErrorReply | None = None
    id: str | None = None
    """The entry's uuid, also if the entry existed before."""
    existed: bool = False


class CreateAclsReply(ReplyMessage, frozen=True):
    """The results, and the log's end after the change."""

    acls: tuple[CreatedAcl, ...]
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class DeletedAcls(ReplyMessage, frozen=True):
    """The result for one filter of a DeleteAclsRequest."""

    error: ErrorReply | None = None
    count: Count = 0
    """How many entries match it, and are removed."""
    acls: tuple[AclDescription, ...] = ()
    """The first of them; the whole answer has at most 1,000."""


class DeleteAclsReply(ReplyMessage, frozen=True):
    """The results, and the log's end after the change."""

    filters: tuple[DeletedAcls, ...]
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class ListAclsReply(ReplyMessage, frozen=True):
    """The entries that match, by id, from one image."""

    offset: int
    epoch: int
    acls: tuple[AclDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there may be more, even if `acls` is empty: ask again with it as `continuation`."""


class CheckAclReply(ReplyMessage, frozen=True):
    """Whether a principal may do something, by the entries and the controllers' settings."""

    offset: int
    epoch: int
    allowed: bool
    reason: str
    """super user, deny, allow, own right, no entry matches, or no entry for the resource."""
    acl: AclDescription | None = None
    """The entry that decided."""
    age_ms: int | None = 0
