"""What Kafka's keys say about listeners: whose they are, their protocol, their certificates.

A node's own listeners are those of controller.listener.names. All others belong to the broker, and
Logberg's agent only announces them. Logberg's listeners speak TLS (SSL) or nothing (PLAINTEXT);
SASL is for brokers.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from logberg.processes.settings.server_properties.addresses import (
    ListenerAddress,
    ServerAddress,
    entries,
    listeners,
    pairs,
)
from logberg.processes.settings.server_properties.syntax import Given
from logberg.processes.settings.settings_files import SettingsError
from logberg.processes.settings.shared_settings import SECURITY_PROTOCOLS
from runtime.http.exposure import is_every_address

Read = Callable[[str], Given | None]
"""Returns the value of a key; None if nothing gives it one."""
TLS: Final = "SSL"
_AGENT_ABOVE: Final = 100
_UNUSABLE: Final = (
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "ssl.key.password",
)


def controller_names(read: Read) -> list[str]:
    """Return the names of the controllers' listeners."""
    given = read("controller.listener.names")
    return [] if given is None else [name.upper() for name in entries(given)]


def protocol_of(read: Read, listener: str) -> str:
    """Return a listener's security protocol: by the map, by its name, else PLAINTEXT."""
    given = read("listener.security.protocol.map")
    known = {} if given is None else pairs("listener.security.protocol.map", given)
    found = known.get(listener, listener if listener in SECURITY_PROTOCOLS else "PLAINTEXT")
    if found not in SECURITY_PROTOCOLS:
        place = "" if given is None else f"{given.place}: "
        raise SettingsError(
            f"{place}listener {listener} has the protocol {found}; use one of "
            f"{', '.join(SECURITY_PROTOCOLS)}."
        )
    return found


def controller_protocol(read: Read) -> str:
    """Return the protocol between controllers, which is that of their HTTP listeners too."""
    names = controller_names(read)
    if not names:
        return "PLAINTEXT"
    found = protocol_of(read, names[0])
    if found.startswith("SASL"):
        raise SettingsError(
            f"the controllers' listener {names[0]} has the protocol {found}, but controllers know "
            "no SASL; use SSL, or PLAINTEXT on a trusted network."
        )
    return found


def check_own_listener(read: Read, voter: ServerAddress) -> None:
    """Check that the node listens where the list of controllers says. Raises SettingsError."""
    names = controller_names(read)
    if not names:
        raise SettingsError(
            "controller.listener.names is missing; name the listener of the controllers, such as "
            "CONTROLLER."
        )
    given = read("listeners")
    own = [] if given is None else listeners("listeners", given)
    mine = next((one for one in own if one.name == names[0]), None)
    if mine is None:
        raise SettingsError(
            f"listeners has no {names[0]}, which controller.listener.names names; add "
            f"{names[0]}://:{voter.port}."
        )
    if mine.port != voter.port:
        assert given is not None
        raise SettingsError(
            f"{given.place}: the listener {mine.name} has port {mine.port}, but the other "
            f"controllers will look for this one at {voter}; write the same port in both."
        )


def endpoints(read: Read) -> list[dict[str, Any]] | None:
    """Return where the broker's clients reach it. Raises SettingsError."""
    found = []
    for key in ("advertised.listeners", "listeners"):
        given = read(key)
        if given is None:
            continue
        for one in _of_broker(read, key, given):
            if is_every_address(one.host):
                raise SettingsError(
                    f"{given.place}: {key} says no host for {one.name}; write "
                    f"advertised.listeners={one.name}://HOST:{one.port}, where clients reach it."
                )
            found.append(
                {
                    "name": one.name,
                    "host": one.host,
                    "port": one.port,
                    "security_protocol": protocol_of(read, one.name),
                }
            )
        return found
    return None


def agent_http(read: Read) -> str | None:
    """Return where the agent listens; None: where it does by default."""
    given = read("logberg.broker.http")
    if given is not None:
        return given.value.strip()
    given = read("listeners")
    own = [] if given is None else _of_broker(read, "listeners", given)
    return f"127.0.0.1:{own[0].port + _AGENT_ABOVE}" if own else None


def controller_tls(read: Read, folder: Path) -> dict[str, str] | None:
    """Return the controller's certificates; None: its listener uses none."""
    if controller_protocol(read) != TLS:
        return None
    return _tls(read, controller_names(read)[0], folder)


def broker_tls(read: Read, folder: Path) -> dict[str, str] | None:
    """Return what the broker shows to controllers; None: their listener uses no TLS.

    It is the certificate of the listener between brokers, or the one for all listeners.
    """
    if controller_protocol(read) != TLS:
        return None
    given = read("inter.broker.listener.name")
    return _tls(read, "" if given is None else given.value.strip().upper(), folder)


def _of_broker(read: Read, key: str, given: Given) -> list[ListenerAddress]:
    names = controller_names(read)
    return [one for one in listeners(key, given) if one.name not in names]


def _tls(read: Read, listener: str, folder: Path) -> dict[str, str]:
    def of(key: str) -> Given | None:
        own = read(f"listener.name.{listener.lower()}.{key}") if listener else None
        return own or read(key)

    for key in _UNUSABLE:
        if (given := of(key)) is not None:
            raise SettingsError(
                f"{given.place}: {key} can't be used. Name PEM files by ssl.keystore.location (the "
                "certificate and its key, without a password) and ssl.truststore.location."
            )
    paths = {}
    for what in ("keystore", "truststore"):
        kind, where = of(f"ssl.{what}.type"), of(f"ssl.{what}.location")
        if kind is None or kind.value.strip().upper() != "PEM":
            place = "" if kind is None else f"{kind.place}: "
            raise SettingsError(
                f"{place}ssl.{what}.type must be PEM; convert the store, for instance with "
                "`openssl pkcs12`."
            )
        if where is None:
            raise SettingsError(f"ssl.{what}.location is missing; name a PEM file.")
        paths[what] = str(folder / where.value.strip())
    return {"cert": paths["keystore"], "key": paths["keystore"], "ca": paths["truststore"]}
