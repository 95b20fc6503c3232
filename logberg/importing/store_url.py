"""Takes the URL of a source apart, as `connect` does, and refuses what an import has no use for.

Rule: what an import shows of a URL never has credentials.
"""

import ssl as tls
from enum import StrEnum
from typing import NamedTuple

from coordination.backend import BackendSettings
from coordination.connect import ParsedUrl, parse_url
from coordination.errors import ConfigError
from logberg.importing.source_error import SourceError
from runtime.asyncio_clock import of_running_loop
from runtime.randomness import from_system


class KeyLayout(StrEnum):
    """Who wrote the keys."""

    PLAIN = "plain"
    """Any program: each key is one."""
    LOGBERG = "logberg"
    """Our own client library: keys of storage stand below the root of its URL."""


class StoreAddress(NamedTuple):
    """Where a source is, and how to ask it."""

    url: ParsedUrl
    timeout_s: float
    """For each request."""
    ssl: tls.SSLContext | None

    @property
    def name(self) -> str:
        """The URL without credentials and options."""
        return f"{self.url.scheme}://{','.join(self.url.endpoints)}/{self.url.path}".rstrip("/")

    @property
    def secure(self) -> bool:
        return self.url.scheme.endswith("+https")

    def with_port(self, default: int) -> tuple[str, ...]:
        """Return the hosts as URLs of HTTP."""
        scheme = "https" if self.secure else "http"
        return tuple(
            f"{scheme}://{host}" + ("" if ":" in host.rpartition("]")[2] else f":{default}")
            for host in self.url.endpoints
        )

    def settings(self) -> BackendSettings:
        """Return what a backend's client is made from. It needs a running event loop."""
        return BackendSettings(
            self.url.scheme,
            self.url.endpoints,
            self.url.path,
            self.timeout_s,
            of_running_loop(),
            from_system(),
            self.ssl,
            self.url.auth,
            self.url.options,
        )


def parse_source(
    url: str,
    schemes: tuple[str, ...],
    options: tuple[str, ...],
    timeout_s: float,
    ca: str | None = None,
) -> StoreAddress:
    """Take a URL apart. `options`: those that `connect` knows. Raises SourceError.

    `ca`: a file with the authority that signed the source's certificates.
    """
    try:
        parsed = parse_url(url, None, {})
    except ConfigError as error:
        raise SourceError(str(error)) from None
    if parsed.scheme not in schemes or not parsed.endpoints:
        raise SourceError(f"the source is {schemes[0]}://host:port,host:port")
    unknown = parsed.options.keys() - set(options)
    if unknown:
        raise SourceError(f"unknown options: {', '.join(sorted(unknown))}")
    try:
        ssl = None if ca is None else tls.create_default_context(cafile=ca)
    except (OSError, ValueError) as error:
        raise SourceError(f"{ca} can't be read as certificates: {error}") from None
    return StoreAddress(parsed, timeout_s, ssl)


def refuse_path(address: StoreAddress) -> None:
    """Raise SourceError if a source of plain keys has a path."""
    if address.url.path:
        raise SourceError(
            "the keys of a plain store have no root: write the URL without a path, and --prefix "
            "for the keys that begin with a text"
        )
