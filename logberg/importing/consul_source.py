"""Reads keys from Consul at one index, and writes nothing there.

Rule: one answer holds all keys, and the leader gives it after it asked a majority (`consistent`).
So it is the state at one index. A key that a session has locked is left.
"""

from typing import Final
from urllib.parse import unquote

from coordination.backends.consul.gateway import ConsulGateway, FoundKeys
from coordination.backends.consul.layout import DEFAULT_ROOT, ConsulLayout
from coordination.backends.consul.messages import ConsulKey
from coordination.errors import CoordinationError
from coordination.http_servers import HttpServers
from logberg.importing.found_keys import OF_A_REQUEST, OF_A_SESSION, FoundKey, StoreReading
from logberg.importing.source_error import SourceError
from logberg.importing.store_url import KeyLayout, parse_source, refuse_path
from runtime.asyncio_clock import of_running_loop

_PORT: Final = 8500
_NOBODYS_KEY: Final = "logberg-import/no-such-key"
"""For a key that isn't there Consul answers with the index of the last change of any key."""


class ConsulSource:
    """The keys of one datacenter that begin with a text, or those of our own client library."""

    def __init__(
        self, url: str, layout: KeyLayout, prefix: str, timeout_s: float, ca: str | None = None
    ) -> None:
        """`prefix`: only these plain keys are read. Raises SourceError."""
        schemes = ("consul+http", "consul+https")
        self._address = parse_source(url, schemes, ("min_ttl",), timeout_s, ca)
        self._root = ""
        if layout is KeyLayout.PLAIN:
            refuse_path(self._address)
            self._first = prefix
        else:
            self._root = (self._address.url.path.strip("/") or DEFAULT_ROOT) + "/"
            self._first = self._root
        self._layout = ConsulLayout(self._address.url.path)
        self.name = self._address.name

    async def read(self) -> StoreReading:
        """Read all keys. Raises SourceError."""
        servers = HttpServers(
            "Consul",
            self._address.with_port(_PORT),
            timeout_s=self._address.timeout_s,
            clock=of_running_loop(),
            ssl=self._address.ssl,
        )
        auth = self._address.url.auth
        gateway = ConsulGateway(servers, auth.password if auth is not None else "")
        servers.open()
        try:
            found = await gateway.read(self._first, recurse=True)
            newest = await gateway.read(_NOBODYS_KEY)
        except CoordinationError as error:
            raise SourceError(f"{self.name}: {error}") from None
        finally:
            await servers.aclose()
        return self._reading(found, max(found.revision, newest.revision))

    def _reading(self, found: FoundKeys, newest: int) -> StoreReading:
        return StoreReading(
            tuple(map(self._key, found.keys)),
            found.revision,
            newest,
            f"one answer of Consul's leader, at index {found.revision}",
        )

    def _key(self, found: ConsulKey) -> FoundKey:
        below = found.Key[len(self._root) :]
        if found.Session:
            return FoundKey(found.Key, "", left=OF_A_SESSION)
        if not self._root:
            return FoundKey(found.Key, found.Key, found.content)
        if not below.startswith("keys/"):
            return FoundKey(found.Key, "", left=OF_A_REQUEST)
        try:
            key = unquote(below.removeprefix("keys/"), errors="strict")
        except UnicodeDecodeError as error:
            return FoundKey(found.Key, "", malformed=f"its name is no UTF-8: {error.reason}")
        if self._layout.key(key) != found.Key:
            why = "its name isn't escaped as this library does it: somebody else wrote it"
            return FoundKey(found.Key, "", malformed=why)
        return FoundKey(found.Key, key, found.content)
