"""Reads the lists of addresses in Kafka's keys: listeners, voters, bootstrap servers.

The forms are Kafka's: NAME://host:port, number@host:port and host:port, with commas between them.
An IPv6 address stands in brackets.
"""

import re
from typing import NamedTuple

from logberg.processes.settings.server_properties.syntax import Given
from logberg.processes.settings.settings_files import SettingsError

_LISTENER = re.compile(r"(?P<name>[^:/]+)://\[?(?P<host>[0-9A-Za-z\-%._:]*?)\]?:(?P<port>[0-9]+)")
_SERVER = re.compile(r"\[?(?P<host>[0-9A-Za-z\-%._:]+?)\]?:(?P<port>[0-9]+)")
_VOTER = re.compile(r"(?P<id>[0-9]+)@(?P<rest>.+)")


class ListenerAddress(NamedTuple):
    """One entry of listeners or advertised.listeners."""

    name: str
    """In upper case."""
    host: str
    """Empty: every address of the machine."""
    port: int


class ServerAddress(NamedTuple):
    """One host and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def entries(given: Given) -> list[str]:
    """Return the entries of a list."""
    return [entry for part in given.value.split(",") if (entry := part.strip())]


def listeners(key: str, given: Given) -> list[ListenerAddress]:
    """Return listeners in their order. Raises SettingsError."""
    found = []
    for entry in entries(given):
        match = _LISTENER.fullmatch(entry)
        if match is None or int(match["port"]) > 65535:
            raise _bad(key, given, entry, "NAME://host:port")
        found.append(ListenerAddress(match["name"].upper(), match["host"], int(match["port"])))
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise SettingsError(f"{given.place}: {key} has a listener twice: {', '.join(names)}.")
    return found


def servers(key: str, given: Given) -> list[ServerAddress]:
    """Return hosts and ports in their order. Raises SettingsError."""
    return [_server(key, given, entry, entry, "host:port") for entry in entries(given)]


def voters(key: str, given: Given) -> dict[int, ServerAddress]:
    """Return hosts and ports by node id. Raises SettingsError."""
    found: dict[int, ServerAddress] = {}
    for entry in entries(given):
        match = _VOTER.fullmatch(entry)
        if match is None:
            raise _bad(key, given, entry, "number@host:port")
        node_id = int(match["id"])
        if node_id in found:
            raise SettingsError(f"{given.place}: {key} has node {node_id} twice.")
        found[node_id] = _server(key, given, match["rest"], entry, "number@host:port")
    return found


def numbered_urls(key: str, given: Given) -> dict[int, str]:
    """Return URLs by node id. Raises SettingsError."""
    found = {}
    for entry in entries(given):
        match = _VOTER.fullmatch(entry)
        if match is None or not match["rest"].startswith(("http://", "https://")):
            raise _bad(key, given, entry, "number@URL, such as 1@https://10.0.0.1:9193")
        found[int(match["id"])] = match["rest"]
    return found


def pairs(key: str, given: Given) -> dict[str, str]:
    """Return NAME:VALUE pairs, names and values in upper case. Raises SettingsError."""
    found = {}
    for entry in entries(given):
        name, colon, value = entry.partition(":")
        if not colon or not name.strip() or not value.strip():
            raise _bad(key, given, entry, "NAME:PROTOCOL")
        found[name.strip().upper()] = value.strip().upper()
    return found


def _server(key: str, given: Given, text: str, entry: str, form: str) -> ServerAddress:
    match = _SERVER.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= 65535:
        raise _bad(key, given, entry, form)
    return ServerAddress(match["host"], int(match["port"]))


def _bad(key: str, given: Given, entry: str, form: str) -> SettingsError:
    return SettingsError(f"{given.place}: {key} has {entry[:200]!r}; write {form}.")
