"""Records about client quotas (KIP-546)."""

from typing import ClassVar

from metadata.records.record import Part, Record


class EntityData(Part, frozen=True):
    """One dimension of a quota's entity: a user, a client id or an address."""

    entity_type: str
    """user, client-id or ip."""
    entity_name: str | None
    """None: the default of that type."""


class ClientQuotaRecord(Record, frozen=True, tag=1400):
    """One quota key of one entity gets a value or is removed (KIP-546)."""

    TYPE_ID: ClassVar[int] = 14
    VERSION: ClassVar[int] = 0

    entity: tuple[EntityData, ...]
    key: str
    value: float
    remove: bool
