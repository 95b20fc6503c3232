"""Records about client quotas (KIP-546)."""

from typing import ClassVar

from metadata.records.declaring import Columns, KnownNames, Privileged
from metadata.records.record import Part, Record

EntityKey = tuple[tuple[str, tuple[str, ...]], ...]
"""(type, (name,)) for each part, sorted; (type, ()) is the default entity of that type."""


class EntityData(Part, frozen=True):
    """One dimension of a quota's entity: a user, a client id or an address."""

    entity_type: str
    """user, client-id or ip."""
    entity_name: str | None
    """None: the default entity of that type."""


def entity_key(entity: tuple[EntityData, ...]) -> EntityKey:
    """Return the key of an entity from its parts in a record or a request."""
    parts = ((part.entity_type, part.entity_name) for part in entity)
    return tuple(sorted((kind, () if name is None else (name,)) for kind, name in parts))


class ClientQuotaRecord(Record, frozen=True, tag=1400):
    """Sets or removes one quota key of one entity (KIP-546)."""

    TYPE_ID: ClassVar[int] = 14
    VERSION: ClassVar[int] = 0
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("quota")
    COLUMNS: ClassVar[Columns] = {
        "config_key": "key",
        "config_value": lambda record: None if record.remove else str(record.value),
        "name": lambda record: record.entity_word,
    }
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quota", "user")

    entity: tuple[EntityData, ...]
    key: str
    value: float
    remove: bool

    @property
    def entity_word(self) -> str:
        """The entity's word, with its parts sorted by type: `quota:client-id=<default>,user=al`."""
        parts = entity_key(self.entity)
        return "quota:" + ",".join(f"{kind}={n[0] if n else '<default>'}" for kind, n in parts)

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        users = (
            f"user:{part.entity_name}"
            for part in self.entity
            if part.entity_type == "user" and part.entity_name is not None
        )
        return (self.entity_word, *users)
