"""Reads keys from etcd at one revision, and writes nothing there.

Rule: all pages show the revision of the first one. If etcd compacts it meanwhile, the reading
begins again. A key with a lease ends with a session and is left.
"""

from typing import Final

from coordination.backends.etcd import messages as wire
from coordination.backends.etcd.gateway import EtcdGateway, RevisionCompacted
from coordination.backends.etcd.layout import DEFAULT_ROOT
from coordination.errors import CoordinationError
from coordination.http_servers import HttpServers
from logberg.importing.found_keys import OF_A_REQUEST, OF_A_SESSION, FoundKey, StoreReading
from logberg.importing.source_error import SourceError
from logberg.importing.store_url import KeyLayout, parse_source, refuse_path
from runtime.asyncio_clock import of_running_loop

_PAGE: Final = 200
_READINGS_MAX: Final = 10
_PORT: Final = 2379


class EtcdSource:
    """The keys of one cluster that begin with a text, or those of our own client library."""

    def __init__(
        self, url: str, layout: KeyLayout, prefix: str, timeout_s: float, ca: str | None = None
    ) -> None:
        """`prefix`: only these plain keys are read. Raises SourceError."""
        self._address = parse_source(url, ("etcd+http", "etcd+https"), (), timeout_s, ca)
        self._root = b""
        if layout is KeyLayout.PLAIN:
            refuse_path(self._address)
            self._first = prefix.encode()
        else:
            self._first = self._root = b"%s/" % (
                (self._address.url.path.strip("/") or DEFAULT_ROOT).encode()
            )
        self.name = self._address.name

    async def read(self) -> StoreReading:
        """Read all keys. Raises SourceError."""
        servers = HttpServers(
            "etcd",
            self._address.with_port(_PORT),
            timeout_s=self._address.timeout_s,
            clock=of_running_loop(),
            ssl=self._address.ssl,
        )
        gateway = EtcdGateway(servers, self._address.url.auth)
        try:
            await gateway.open()
            revision, found = await self._whole(gateway)
        except CoordinationError as error:
            raise SourceError(f"{self.name}: {error}") from None
        finally:
            await gateway.aclose()
        return StoreReading(
            tuple(map(self._key, found)), revision, revision, f"etcd's state at revision {revision}"
        )

    async def _whole(self, gateway: EtcdGateway) -> tuple[int, list[wire.EtcdKey]]:
        for _ in range(_READINGS_MAX):
            try:
                return await self._pages(gateway)
            except RevisionCompacted:
                continue
        raise SourceError(
            f"{self.name}: etcd compacted what was being read, {_READINGS_MAX} times in a row; "
            "compact it less often meanwhile"
        )

    async def _pages(self, gateway: EtcdGateway) -> tuple[int, list[wire.EtcdKey]]:
        found: list[wire.EtcdKey] = []
        start, end, revision = self._first or b"\0", wire.prefix_end(self._first), 0
        while True:
            request = wire.RangeRequest(key=start, range_end=end, limit=_PAGE, revision=revision)
            reply = await gateway.ask("/v3/kv/range", request, wire.RangeReply)
            revision = revision or reply.header.revision
            found += reply.kvs
            if not reply.more:
                return revision, found
            start = reply.kvs[-1].key + b"\0"

    def _key(self, found: wire.EtcdKey) -> FoundKey:
        path = found.key.decode(errors="backslashreplace")
        below = found.key[len(self._root) :]
        if found.lease:
            return FoundKey(path, "", left=OF_A_SESSION)
        if self._root and not below.startswith(b"keys/"):
            return FoundKey(path, "", left=OF_A_REQUEST)
        try:
            key = below.removeprefix(b"keys/" if self._root else b"").decode()
        except UnicodeDecodeError as error:
            return FoundKey(path, "", malformed=f"its name is no UTF-8: {error.reason}")
        return FoundKey(path, key, found.value)
