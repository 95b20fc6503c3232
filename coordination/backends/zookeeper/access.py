"""How a connection shows who it is, and what ZooKeeper then lets others do with the nodes it makes.

Rule: whoever gives credentials owns the nodes: nobody else may read or change them. Without
credentials they are open.
"""

import ssl as tls
from dataclasses import dataclass
from typing import Any, Self

from kazoo.security import make_acl, make_digest_acl

from coordination.backend import BackendSettings
from coordination.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ZooKeeperAccess:
    """What kazoo needs of credentials."""

    ssl: tls.SSLContext | None
    digest: str | None = None
    sasl: dict[str, str] | None = None
    acl: list[Any] | None = None

    @classmethod
    def of_settings(cls, settings: BackendSettings) -> Self:
        """Read `auth=digest` (as without it) or `auth=sasl`. Raises ConfigError."""
        way = settings.options.get("auth", "digest")
        if way not in ("digest", "sasl"):
            raise ConfigError(f"zookeeper's auth is digest or sasl, not {way!r}")
        ssl = settings.ssl
        if ssl is None and settings.scheme == "zookeeper+tls":
            ssl = tls.create_default_context()
        auth = settings.auth
        if auth is None:
            return cls(ssl)
        if auth.token:
            raise ConfigError("zookeeper takes a user and a password, not a token")
        name, password = auth.username, auth.password
        if way == "digest":
            acl = [make_digest_acl(name, password, all=True)]
            return cls(ssl, digest=f"{name}:{password}", acl=acl)
        _need_sasl()
        sasl = {"mechanism": "DIGEST-MD5", "username": name, "password": password}
        return cls(ssl, sasl=sasl, acl=[make_acl("sasl", name, all=True)])


def _need_sasl() -> None:
    try:
        import puresasl  # noqa: F401, PLC0415 - an extra of kazoo's, needed for this way only
    except ImportError:
        raise ConfigError("auth=sasl needs the package pure-sasl") from None
