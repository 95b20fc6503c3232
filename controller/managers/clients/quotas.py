"""Changes client quotas (KIP-546), and finds those that match a filter.

Rules of Kafka's ClientQuotaControlManager: each entity is judged by itself, and all of its changes
are done or none. A value that is there already and the removal of what is not there write nothing.
"""

from collections import Counter
from collections.abc import Generator, Mapping
from ipaddress import ip_address
from math import isfinite
from typing import Final, NamedTuple

from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    AlteredQuotas,
    AlterQuotasReply,
    AlterQuotasRequest,
    QuotaAlteration,
    QuotaEntity,
    QuotaEntityPart,
    error_reply,
)
from metadata.plain_text import check_plain
from metadata.quota_rules import (
    CLIENT_ID,
    CLIENT_KEYS,
    ENTITY_TYPES,
    IP,
    IP_KEYS,
    USER,
    QuotaKey,
)
from metadata.records import ClientQuotaRecord, EntityData, EntityKey, Record, entity_key

_TYPES: Final = ", ".join(ENTITY_TYPES)
NAME_MAX: Final = 249
"""Characters of an entity's name."""
_FRACTION: Final = 1e-6
_STEP: Final = 256
"""Entities between two yields."""


def alter_quotas(
    image: MetadataImage, request: AlterQuotasRequest
) -> Generator[None, None, ControllerResult]:
    """Change quotas; yields every 256 entities."""
    records: list[Record] = []
    results = []
    seen: set[EntityKey] = set()
    for number, entry in enumerate(request.entries):
        shown = tuple(QuotaEntity(part.entity_type, part.entity_name) for part in entry.entity)
        try:
            records += _changes(image, f"entries[{number}]", entry, seen)
            results.append(AlteredQuotas(shown))
        except LogbergError as error:
            results.append(AlteredQuotas(shown, error_reply(error)))
        if number % _STEP == _STEP - 1:
            yield
    return ControllerResult(records, AlterQuotasReply(tuple(results), dry_run=request.dry_run))


def _changes(
    image: MetadataImage, field: str, entry: QuotaAlteration, seen: set[EntityKey]
) -> list[Record]:
    """Return the records of one entity. Raises LogbergError INVALID_REQUEST."""
    keys = check_entity(f"{field}.entity", entry.entity)
    entity = tuple(EntityData(part.entity_type, part.entity_name) for part in entry.entity)
    key = entity_key(entity)
    if key in seen:
        raise _invalid(f"{field}.entity", "the entity is in the request twice")
    seen.add(key)
    now = image.client_quotas.of(*entity)
    times = Counter(operation.key for operation in entry.operations)
    records: list[Record] = []
    for place, operation in enumerate(entry.operations):
        where = f"{field}.operations[{place}]"
        if times[operation.key] > 1:
            raise _invalid(f"{where}.key", f"{operation.key[:50]!r} is there twice")
        if operation.value is None:
            if operation.key in now:
                records.append(ClientQuotaRecord(entity, operation.key, 0.0, True))
            continue
        _check_value(where, keys, operation.key, operation.value)
        if now.get(operation.key) != operation.value:
            records.append(ClientQuotaRecord(entity, operation.key, operation.value, False))
    return records


def check_entity(field: str, entity: tuple[QuotaEntityPart, ...]) -> Mapping[str, QuotaKey]:
    """Return the keys that an entity may have. Raises LogbergError INVALID_REQUEST."""
    if not entity:
        raise _invalid(field, "it is empty; give a user, a client-id, both, or an ip")
    kinds = Counter(part.entity_type for part in entity)
    for part in entity:
        kind, name = part.entity_type, part.entity_name
        if kind not in ENTITY_TYPES:
            raise _invalid(f"{field}.entityType", f"{kind[:50]!r} is unknown; give {_TYPES}")
        if kinds[kind] > 1:
            raise _invalid(f"{field}.entityType", f"{kind} is there twice")
        if name is None:
            continue
        if not name:
            raise _invalid(f"{field}.entityName", f"an empty {kind} is not supported")
        if len(name) > NAME_MAX:
            raise _invalid(f"{field}.entityName", f"it has more than {NAME_MAX} characters")
        check_plain(f"{field}.entityName", name)
        if kind == IP and not _is_address(name):
            raise _invalid(f"{field}.entityName", f"{name[:50]!r} is not an IP address")
    if IP not in kinds:
        return CLIENT_KEYS
    if len(kinds) > 1:
        raise _invalid(field, "an ip can't be combined with a user or a client-id")
    return IP_KEYS


def _check_value(field: str, keys: Mapping[str, QuotaKey], name: str, value: float) -> None:
    """Raise LogbergError INVALID_REQUEST for a key or a value that is not possible."""
    key = keys.get(name)
    if key is None:
        raise _invalid(f"{field}.key", f"{name[:50]!r} is not a key of it; give {', '.join(keys)}")
    if not isfinite(value) or value <= 0:
        raise _invalid(f"{field}.value", f"{name} must be greater than 0")
    if key.most is not None and value > key.most:
        raise _invalid(f"{field}.value", f"{name} is at most {key.most:.0f}")
    if key.whole and value % 1.0 > _FRACTION:
        raise _invalid(f"{field}.value", f"{name} can't be a fraction")


class QuotaFilter(NamedTuple):
    """Which entities are meant."""

    exact: Mapping[str, tuple[str, ...]]
    """By type: a name, or nothing for the default."""
    any_of: frozenset[str]
    """Types that an entity must have, whatever the name."""
    strict: bool
    """An entity must have no other part."""

    def matches(self, key: EntityKey) -> bool:
        """Return whether an entity is meant."""
        parts = dict(key)
        if self.strict and len(parts) != len(self.exact) + len(self.any_of):
            return False
        return self.any_of <= parts.keys() and all(
            parts.get(kind) == name for kind, name in self.exact.items()
        )


_QUERY: Final = {USER: "user", CLIENT_ID: "clientId", IP: "ip"}


def quota_filter(query: Mapping[str, str]) -> QuotaFilter:
    """Read a filter from a query. Raises LogbergError INVALID_REQUEST.

    `user=alice` is the name, `userMatch=default` the default, `userMatch=any` every name and the
    default (Kafka's MATCH_TYPE_EXACT, _DEFAULT and _SPECIFIED).
    """
    exact: dict[str, tuple[str, ...]] = {}
    any_of = set[str]()
    for kind, name in _QUERY.items():
        given, match = query.get(name), query.get(f"{name}Match")
        if match not in (None, "exact", "default", "any"):
            raise _invalid(f"{name}Match", f"{match[:50]!r}; give exact, default or any")
        if match in ("default", "any") and given is not None:
            raise _invalid(name, f"{name}Match is {match}, so no name may be given")
        if match == "exact" and given is None:
            raise _invalid(name, f"{name}Match is exact, so a name must be given")
        if given is not None:
            exact[kind] = (given,)
        elif match == "default":
            exact[kind] = ()
        elif match == "any":
            any_of.add(kind)
    asked = {*exact, *any_of}
    if IP in asked and len(asked) > 1:
        raise _invalid("ip", "an ip can't be combined with a user or a client id")
    strict = query.get("strict", "false")
    if strict not in ("true", "false"):
        raise _invalid("strict", f"{strict[:50]!r}; give true or false")
    return QuotaFilter(exact, frozenset(any_of), strict == "true")


def describe_entity(key: EntityKey) -> tuple[QuotaEntity, ...]:
    """Describe an entity, part by part."""
    return tuple(QuotaEntity(kind, name[0] if name else None) for kind, name in key)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _invalid(field: str, why: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REQUEST, f"{field}: {why}", {"field": field})
