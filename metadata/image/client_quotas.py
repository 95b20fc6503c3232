"""Client quotas by entity (KIP-546).

Rule: an entity's key has its parts sorted by type, whatever their order in a record. An entity
whose last quota is removed is removed from the map. `order` is derived from `entities`, and is
in no snapshot.
"""

from collections.abc import Callable, Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_entity
from metadata.image.open_maps import BuiltKeys, OpenMap
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, replays
from metadata.records import ClientQuotaRecord, EntityData, EntityKey, Record, entity_key

QuotaValues = tuple[tuple[str, float], ...]
"""(quota key, value), sorted by key."""


class ClientQuotasImage(msgspec.Struct, frozen=True):
    """The quotas of each entity that has quotas."""

    entities: BucketMap[EntityKey, QuotaValues]
    order: SortedKeys[EntityKey]
    """The keys of all entities, in order."""

    def of(self, *entity: EntityData) -> dict[str, float]:
        """Return an entity's own quotas, sorted by key."""
        return dict(self.entities.get(entity_key(entity), ()))


EMPTY_CLIENT_QUOTAS = ClientQuotasImage(BucketMap(mix_entity), SortedKeys())


def quota_records(key: EntityKey, values: QuotaValues) -> tuple[Record, ...]:
    """Return the records that restore an entity's quotas."""
    entity = tuple(EntityData(kind, name[0] if name else None) for kind, name in key)
    return tuple(ClientQuotaRecord(entity, quota, value, False) for quota, value in values)


class ClientQuotasDelta:
    """Replays the records of client quotas."""

    def __init__(self, image: ClientQuotasImage) -> None:
        self._order = image.order
        self.entities = Overlay(image.entities)

    def apply_in_steps(self) -> Generator[None, None, ClientQuotasImage]:
        return ClientQuotasImage(
            (yield from self.entities.apply_in_steps()),
            (yield from self._order.changing(self.entities.changed)),
        )

    def opened(self, built: Callable[[], ClientQuotasImage]) -> ClientQuotasImage:
        """Return the image of what was replayed so far (see `open_maps`)."""
        return ClientQuotasImage(
            OpenMap(self.entities, lambda: built().entities), BuiltKeys(lambda: built().order)
        )

    @replays(ClientQuotaRecord)
    def set_quota(self, record: ClientQuotaRecord, offset: int) -> None:
        """Set or remove a quota. A quota that is removed need not exist."""
        key = entity_key(record.entity)
        if not key or len({kind for kind, _ in key}) != len(key):
            raise ReplayError(offset, "a quota's entity has no part, or two parts of one type")
        values = dict(self.entities.get(key) or ())
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            self.entities.set(key, tuple(sorted(values.items())))
        else:
            self.entities.remove(key)


TABLES: Final = (ImageTable("client_quotas", "client_quotas", "entities", quota_records, "quota"),)
