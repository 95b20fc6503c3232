"""Client quotas. `POST`, `GET /v1/quotas`, `GET /v1/quotas/resolve` (KIP-546, 599, 612)."""

from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.message import ReplyMessage, RequestMessage

ENTITIES_PER_REQUEST = 1_000


class QuotaEntityPart(RequestMessage, frozen=True):
    """One part of an entity."""

    entity_type: str
    """user, client-id or ip."""
    entity_name: str | None = None
    """null: the default of that type."""


class QuotaOperation(RequestMessage, frozen=True):
    """One quota gets a value, or is removed."""

    key: str
    """Such as producer_byte_rate."""
    value: float | None = None
    """null: remove it."""


class QuotaAlteration(RequestMessage, frozen=True):
    """The changes for one entity: all of them are made, or none."""

    entity: Annotated[tuple[QuotaEntityPart, ...], Meta(max_length=3)]
    operations: Annotated[tuple[QuotaOperation, ...], Meta(max_length=16)]


class AlterQuotasRequest(RequestMessage, frozen=True):
    """Change the quotas of these entities. The controller decides each entity by itself."""

    entries: Annotated[
        tuple[QuotaAlteration, ...], Meta(min_length=1, max_length=ENTITIES_PER_REQUEST)
    ]
    dry_run: bool = False


class QuotaEntity(ReplyMessage, frozen=True):
    """One part of an entity, in an answer."""

    entity_type: str
    entity_name: str | None
    """null: the default of that type."""


class AlteredQuotas(ReplyMessage, frozen=True):
    """The result for one entity of an AlterQuotasRequest."""

    entity: tuple[QuotaEntity, ...]
    error: ErrorReply | None = None


class AlterQuotasReply(ReplyMessage, frozen=True):
    """The results in the order of the request, and the log's end after the change."""

    entries: tuple[AlteredQuotas, ...]
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class EntityQuotas(ReplyMessage, frozen=True):
    """The quotas of one entity."""

    entity: tuple[QuotaEntity, ...]
    values: dict[str, float]


class ListQuotasReply(ReplyMessage, frozen=True):
    """The entities that match, from one image."""

    offset: int
    epoch: int
    entries: tuple[EntityQuotas, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there may be more, even if `entries` is empty: ask again with it as `continuation`."""


class AppliedQuota(ReplyMessage, frozen=True):
    """A quota that applies to a client."""

    key: str
    value: float
    entity: tuple[QuotaEntity, ...]
    """The entity that has this quota."""


class ResolveQuotasReply(ReplyMessage, frozen=True):
    """The quotas that apply to a client; a key that is not here has no limit."""

    offset: int
    epoch: int
    quotas: tuple[AppliedQuota, ...]
    age_ms: int | None = 0
