"""`[kafka]` in a controller's file: the listener for Kafka's brokers and administrators.

Rule: beyond this machine the listener needs TLS and authentication, unless the operator trusts the
network. PLAIN needs TLS everywhere, because it sends a token in clear.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from kafka_listener.serving.logins import MECHANISMS, PLAIN
from metadata.features import METADATA_VERSION
from runtime.http.exposure import is_loopback

HOST_MAX: Final = 128
"""So long may a host be that stands in the log as an address."""
NAME_MAX: Final = 249
KAFKA_LEVEL: Final = 30
"""The level of metadata.version (4.3-IV0) at which a log for Kafka's brokers begins."""
_FIRST: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "group.version": (22, 1),
        "transaction.version": (24, 2),
        "share.version": (29, 1),
        "streams.version": (29, 1),
    }
)
"""By the feature: from this level of metadata.version on, Kafka's own clusters begin at that level
of the feature."""


class KafkaSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The listener for Kafka's protocol."""

    listen: str
    """host:port of the listener."""
    listener_name: str = "CONTROLLER"
    """Its name, as in controller.listener.names of Kafka's brokers."""
    advertised: str = ""
    """host:port at which brokers reach it, if that is another one than `listen`; it stands in the
    log."""
    sasl_mechanisms: tuple[str, ...] = ()
    """How clients may log in beside certificates: PLAIN with a bearer token (only with `[tls]`),
    SCRAM-SHA-256, SCRAM-SHA-512 with a user's password."""


def kafka_problems(
    kafka: KafkaSettings,
    address: tuple[str, int],
    *,
    tls: bool,
    require_authentication: bool,
    insecure_network: bool,
) -> list[str]:
    """Say what is wrong with the settings, a sentence each. `address`: that of brokers."""
    found = [
        f"kafka.sasl_mechanisms: {name!r} is not known; use {', '.join(MECHANISMS)}."
        for name in kafka.sasl_mechanisms
        if name not in MECHANISMS
    ]
    if PLAIN in kafka.sasl_mechanisms and not tls:
        found.append("kafka.sasl_mechanisms: PLAIN sends a token in clear, so it needs [tls].")
    if not 0 < len(kafka.listener_name) <= NAME_MAX:
        found.append(f"kafka.listener_name must have 1 to {NAME_MAX} characters.")
    if len(address[0]) > HOST_MAX:
        found.append(f"kafka: the host that brokers use has more than {HOST_MAX} characters.")
    host = kafka.listen.rpartition(":")[0].strip("[]")
    if not is_loopback(host) and not insecure_network and not (tls and require_authentication):
        found.append(
            f"kafka.listen is {kafka.listen}: beyond this machine it needs [tls] and "
            "require_authentication, or anybody could change the cluster's metadata. Or pass "
            "--insecure-network if the network is trusted."
        )
    return found


def first_features_for_kafka(chosen: Mapping[str, int]) -> dict[str, int]:
    """Return where a new log for Kafka's brokers begins; `chosen` are the operator's levels."""
    level = chosen.get(METADATA_VERSION, KAFKA_LEVEL)
    brought = {name: first for name, (since, first) in _FIRST.items() if level >= since}
    return {METADATA_VERSION: level, **brought, **chosen}
