"""`[kafka]` in a node's file: a listener for Kafka's protocol.

A controller's is for Kafka's brokers and administrators, an agent's for Kafka's clients.

Rule: beyond this machine a listener needs TLS and authentication, unless the operator trusts the
network. PLAIN needs TLS everywhere, because it sends a token in clear. An agent asks the
controllers in its clients' names, so their logins need the agent's own certificate, too.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from kafka_listener.serving.logins import MECHANISMS, PLAIN, SCRAM
from metadata.configs.checks import own_problems
from metadata.features import METADATA_VERSION
from runtime.http.exposure import is_every_address, is_loopback

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
    """How clients may log in beside certificates: PLAIN with a bearer token or a delegation token
    (only with `[tls]`), SCRAM-SHA-256, SCRAM-SHA-512 with a user's password."""
    broker_users: dict[str, int] = {}
    """Users whose SCRAM login is that of a broker, such as { "kafka-7" = 7 }. Each broker needs a
    user of its own, because a credential says which broker speaks."""


class AgentKafkaSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An agent's listener for Kafka's clients."""

    listen: str
    """host:port of the listener."""
    listener_name: str = "CLIENTS"
    """Its name; no entry of `endpoints` has the same. Clients learn the addresses of brokers whose
    listener has this name, so it is the same at all brokers."""
    advertised: str = ""
    """host:port at which clients reach it, if that is another one than `listen`. The broker
    registers it as an endpoint."""
    sasl_mechanisms: tuple[str, ...] = ()
    """How clients may log in beside certificates; all need `[tls]`: PLAIN with a bearer token of
    the controllers, SCRAM-SHA-256, SCRAM-SHA-512 with a user's password (they need cluster_key)."""
    configs: dict[str, str] = {}
    """Kafka's keys of brokers that DescribeConfigs shows as this broker's own; the same as in the
    controllers' `configs`."""


def kafka_problems(
    kafka: KafkaSettings,
    address: tuple[str, int],
    *,
    tls: bool,
    require_authentication: bool,
    insecure_network: bool,
) -> list[str]:
    """Say what is wrong with the settings, a sentence each. `address`: that of brokers."""
    found = _listener_problems(kafka, address, "brokers", tls=tls) + _broker_user_problems(kafka)
    if _is_exposed(kafka) and not insecure_network and not (tls and require_authentication):
        found.append(
            f"kafka.listen is {kafka.listen}: beyond this machine it needs [tls] and "
            "require_authentication, or anybody could change the cluster's metadata. Or pass "
            "--insecure-network if the network is trusted."
        )
    return found


def agent_kafka_problems(
    kafka: AgentKafkaSettings,
    address: tuple[str, int],
    *,
    tls: bool,
    cluster_key: bool,
    insecure_network: bool,
) -> list[str]:
    """Say what is wrong with an agent's settings, a sentence each. `address`: that of clients."""
    found = _listener_problems(kafka, address, "clients", tls=tls)
    scram = [name for name in kafka.sasl_mechanisms if name in SCRAM]
    if scram and not tls:
        found.append(
            f"kafka.sasl_mechanisms: {', '.join(scram)} needs [tls]: the agent asks the "
            "controllers in its clients' names, and they believe an agent with a certificate only."
        )
    if scram and not cluster_key:
        found.append(
            f"kafka.sasl_mechanisms: {', '.join(scram)} needs cluster_key: the log holds the "
            "credentials of users sealed."
        )
    if _is_exposed(kafka) and not insecure_network and not tls:
        found.append(
            f"kafka.listen is {kafka.listen}: beyond this machine it needs [tls], or anybody could "
            "change the cluster's metadata. Or pass --insecure-network if the network is trusted."
        )
    return found + [f"kafka.configs: {problem}" for problem in own_problems(kafka.configs)]


def _listener_problems(
    kafka: KafkaSettings | AgentKafkaSettings, address: tuple[str, int], users: str, *, tls: bool
) -> list[str]:
    """Say what is wrong with any listener. `users` use `address`."""
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
        found.append(f"kafka: the host that {users} use has more than {HOST_MAX} characters.")
    if is_every_address(address[0]):
        found.append(
            f"kafka.advertised is missing: {users} can't connect to {address[0]}; write the "
            "host:port that they use."
        )
    return found


def _is_exposed(kafka: KafkaSettings | AgentKafkaSettings) -> bool:
    return not is_loopback(kafka.listen.rpartition(":")[0].strip("[]"))


def _broker_user_problems(kafka: KafkaSettings) -> list[str]:
    if not kafka.broker_users:
        return []
    numbers = list(kafka.broker_users.values())
    found = [
        f"kafka.broker_users: {name!r} is broker {number}; a broker's number is 0 or more."
        for name, number in kafka.broker_users.items()
        if number < 0
    ]
    if len(set(numbers)) < len(numbers):
        found.append("kafka.broker_users: two users are the same broker; each has its own.")
    if not any(name in SCRAM for name in kafka.sasl_mechanisms):
        found.append(
            "kafka.broker_users has no effect without SCRAM; add SCRAM-SHA-512 to "
            "kafka.sasl_mechanisms."
        )
    return found


def first_features_for_kafka(chosen: Mapping[str, int]) -> dict[str, int]:
    """Return where a new log for Kafka's brokers begins; `chosen` are the operator's levels."""
    level = chosen.get(METADATA_VERSION, KAFKA_LEVEL)
    brought = {name: first for name, (since, first) in _FIRST.items() if level >= since}
    return {METADATA_VERSION: level, **brought, **chosen}
