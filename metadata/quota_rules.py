"""Which client quotas exist, and which of them applies to a client (KIP-13, 124, 546, 599, 612).

A quota is a key and a value of an entity. An entity is a user, a client id, both, or an address;
each part is a name or the default of its type. Rule: for each key by itself, the first entity of
`precedence` that has the key decides.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from metadata.image.client_quotas import ClientQuotasImage
from metadata.records import EntityKey

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
"""Partitions a second that a client may create, delete or touch (KIP-599)."""


class QuotaKey(NamedTuple):
    """One key."""

    most: float | None
    """The largest value; None: any."""
    whole: bool
    """True: fractions are refused."""
    summary: str


_LONG_MAX: Final = 2.0**63
CLIENT_KEYS: Final[Mapping[str, QuotaKey]] = {
    "producer_byte_rate": QuotaKey(_LONG_MAX, True, "bytes a second that a client may produce"),
    "consumer_byte_rate": QuotaKey(_LONG_MAX, True, "bytes a second that a client may consume"),
    "request_percentage": QuotaKey(None, False, "percent of a thread's time for its requests"),
    CONTROLLER_MUTATION_RATE: QuotaKey(
        None, False, "partitions a second that it may create, delete or touch"
    ),
}
"""Of users and client ids."""
IP_KEYS: Final[Mapping[str, QuotaKey]] = {
    "connection_creation_rate": QuotaKey(
        2.0**31 - 1, True, "connections a second that an address may open"
    )
}


class Applied(NamedTuple):
    """A quota that applies to a client."""

    value: float
    entity: EntityKey
    """The entity that has this quota."""


def precedence(user: str | None, client_id: str | None, ip: str | None) -> Iterator[EntityKey]:
    """Yield the entities whose quotas could apply to a client, in the order of precedence.

    None: the client has no user, client id or address that is known.
    """
    for of_user in (_named(user), _default(user)):
        if of_user is None:
            continue
        for of_client in (_named(client_id), _default(client_id), None):
            if of_client is not None:
                yield (CLIENT_ID, of_client), (USER, of_user)
        yield ((USER, of_user),)
    for of_client in (_named(client_id), _default(client_id)):
        if of_client is not None:
            yield ((CLIENT_ID, of_client),)
    for of_ip in (_named(ip), _default(ip)):
        if of_ip is not None:
            yield ((IP, of_ip),)


def resolve(
    quotas: ClientQuotasImage, user: str | None, client_id: str | None, ip: str | None
) -> dict[str, Applied]:
    """Return the quotas that apply to a client, by key."""
    found: dict[str, Applied] = {}
    for entity in precedence(user, client_id, ip):
        for key, value in quotas.entities.get(entity, ()):
            found.setdefault(key, Applied(value, entity))
    return found


def _named(name: str | None) -> tuple[str, ...] | None:
    return None if name is None else (name,)


def _default(name: str | None) -> tuple[str, ...] | None:
    return None if name is None else ()
