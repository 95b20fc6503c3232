"""Settings that controllers and brokers' agents share: certificates, endpoints, addresses, Kafka.

Rule: what is wrong is a sentence that names the key and what to write instead.
"""

from collections.abc import Callable

import msgspec

from logberg.processes.settings.kafka_settings import AgentKafkaSettings, KafkaSettings
from logberg.processes.settings.settings_files import SettingsError
from metadata.acl_rules import Enforcement
from metadata.plain_text import control_character

AUTHORIZATION = tuple(each.value for each in Enforcement)
"""What the setting `authorization` may be."""
LOG_LEVELS = ("debug", "info", "warning", "error")
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Of listeners, by Kafka's names, each at its number in records."""


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Paths of PEM files."""

    cert: str
    """Our certificate, followed by intermediate ones."""
    key: str
    """Its key, without a password, readable by nobody else."""
    ca: str
    """The CA certificates that must have signed the certificates of others."""


class BrokerEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the broker's own clients reach it."""

    name: str
    """Of the listener; unique within a broker."""
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""


def host_and_port(text: str, key: str) -> tuple[str, int]:
    """Split `host:port` (or `[v6]:port`). Raises SettingsError naming the key."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise SettingsError(f"{key} is {text!r}; use host:port, such as 127.0.0.1:19091.")
    return host.strip("[]"), int(port)


def reached_at(kafka: KafkaSettings | AgentKafkaSettings) -> tuple[str, int]:
    """Return the address of a listener for others. Raises SettingsError."""
    listen = host_and_port(kafka.listen, "kafka.listen")
    return host_and_port(kafka.advertised, "kafka.advertised") if kafka.advertised else listen


def kafka_listener_problems(
    kafka: KafkaSettings | AgentKafkaSettings | None,
    problems_at: Callable[[tuple[str, int]], list[str]],
) -> list[str]:
    """Say what is wrong with a node's listener for Kafka's protocol, if it has one.

    `problems_at` is asked about the address at which others reach it.
    """
    if kafka is None:
        return []
    try:
        address = reached_at(kafka)
    except SettingsError as error:
        return [str(error)]
    return problems_at(address)


def access_problems(authorization: str, super_users: tuple[str, ...]) -> list[str]:
    """Say what is wrong with a node's settings about rights."""
    found = [
        f"super_users: the principal {principal!r} is not valid; use User:NAME, without control "
        "characters."
        for principal in super_users
        if control_character(principal) or not all(principal.partition(":"))
    ]
    if authorization and authorization not in AUTHORIZATION:
        found.append(f"authorization is {authorization!r}; use one of {', '.join(AUTHORIZATION)}.")
    return found


def log_level_problems(level: str) -> list[str]:
    """Say what is wrong with a log level."""
    if level in LOG_LEVELS:
        return []
    return [f"log_level is {level!r}; use one of {', '.join(LOG_LEVELS)}."]


def address_problems(addresses: list[str], key: str) -> list[str]:
    """Say which addresses are none. `key`: where they stand."""
    found = []
    for address in addresses:
        try:
            host_and_port(address, key)
        except SettingsError as error:
            found.append(str(error))
    return found
