"""Which quota applies to a client: every quota is looked at, and the most specific one counts.

Written from the order of KIP-13 and 55 (user and client id, user, client id; a name before the
default), KIP-546 (an entity's default) and KIP-612 (addresses).

Rule: this module knows nothing of the product.
"""

from collections.abc import Mapping

Entity = frozenset[tuple[str, str | None]]
"""The parts of an entity: type, and name; None: the default of the type."""
Applied = dict[str, tuple[float, Entity]]
"""By key: the value, and the entity that has it."""


def applied(
    quotas: Mapping[Entity, Mapping[str, float]],
    user: str | None,
    client_id: str | None,
    ip: str | None,
) -> Applied:
    """Return the quotas that apply to a client, each key by itself; None: it has no such part."""
    client = {"user": user, "client-id": client_id, "ip": ip}
    keys = {key for values in quotas.values() for key in values}
    found: Applied = {}
    for key in keys:
        having = [
            entity for entity, values in quotas.items() if key in values and _is_of(entity, client)
        ]
        if having:
            best = min(having, key=_place)
            found[key] = quotas[best][key], best
    return found


def _is_of(entity: Entity, client: Mapping[str, str | None]) -> bool:
    """Return whether each part is the client's own name, or the default of a part that it has."""
    return all(client[kind] is not None and name in (None, client[kind]) for kind, name in entity)


def _place(entity: Entity) -> int:
    """Return how early an entity counts: the user decides first, and the client id within it."""
    parts = dict(entity)
    if "ip" in parts:
        return 0 if parts["ip"] is not None else 1
    order = {"named": 0, "default": 1, "absent": 2}

    def of(kind: str) -> int:
        if kind not in parts:
            return order["absent"]
        return order["default" if parts[kind] is None else "named"]

    return 3 * of("user") + of("client-id")
