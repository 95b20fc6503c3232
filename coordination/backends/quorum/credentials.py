"""Whom a client trusts, and who it says it is: a token, a certificate, an authority.

Rule: a token goes only over a TLS connection whose other side has proved to be a controller, of the
cluster that `cluster_id` names or else always of the first one. Over plain HTTP it goes only if the
caller allowed it, and only to controllers that the URL names.
"""

import ssl
from pathlib import Path

from coordination.backend import BackendSettings
from coordination.errors import ConfigError
from runtime.sockets.peer_proof import ControllerProof
from runtime.sockets.tls import TlsFiles, TlsFilesError, client_context

CREDENTIALS = ("ca", "cert", "key", "token_file", "token_in_clear", "cluster_id")
"""The options of this file."""


def token_of(settings: BackendSettings) -> str | None:
    """Return the token to send; None: there is none. Raises ConfigError."""
    auth = settings.auth
    if auth is not None and (auth.username or auth.password or not auth.token):
        raise ConfigError("controllers take a token: auth=Auth(token=…), or a TLS certificate")
    token = _token_in_file(settings) if auth is None else auth.token
    in_clear = settings.options.get("token_in_clear") == "true"
    if token is not None and not settings.secure and not in_clear:
        raise ConfigError(
            "the token isn't sent over plain HTTP, where others can read it; use quorum+https, "
            "or allow it with token_in_clear=true"
        )
    return token


def tls_of(settings: BackendSettings, token: str | None) -> ssl.SSLContext | None:
    """Return the TLS context; None if the scheme asks for none. Raises ConfigError."""
    if not settings.secure:
        return None
    context = settings.ssl if settings.ssl is not None else _context(settings)
    if token is not None:
        ControllerProof(settings.options.get("cluster_id")).demand(context)
    return context


def _context(settings: BackendSettings) -> ssl.SSLContext:
    ca, cert, key = (settings.options.get(name) for name in ("ca", "cert", "key"))
    if (cert is None) != (key is None):
        raise ConfigError("cert and key belong together: a certificate is used with its key")
    if ca is None:
        if cert is not None:
            raise ConfigError(
                "cert needs ca: name the CA that signed the controllers' certificates"
            )
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context
    files = None
    if cert is not None and key is not None:
        files = TlsFiles(Path(cert), Path(key), Path(ca))
    try:
        return client_context(Path(ca), files)
    except TlsFilesError as error:
        raise ConfigError(str(error)) from error


def _token_in_file(settings: BackendSettings) -> str | None:
    path = settings.options.get("token_file")
    try:
        return None if path is None else Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"the token file can't be read: {error}") from error
