"""Coordination on Logberg's own controllers: every session, entry and key is in the metadata log.

`quorum+https://c1:9093,c2:9093,c3:9093`, or `quorum+http` without TLS. `asking` finds the leader
and repeats requests safely, `refusals` turns answers into errors, `connection` is the backend, and
`polling` asks for the news of many watches in one request.
"""

from pathlib import Path

import structlog

from coordination.backend import Backend, BackendSettings
from coordination.backends.quorum.asking import ControllerRequests
from coordination.backends.quorum.connection import QuorumBackend
from coordination.errors import ConfigError
from runtime.http.client import HttpRequester
from runtime.sockets.peer_proof import ControllerProof
from runtime.sockets.tls import TlsFilesError, client_context

OPTIONS = ("ca", "token_file", "token_in_clear", "only_named", "client_name")


def make_backend(settings: BackendSettings) -> Backend:
    """Return a connection to the controllers of the URL. To be called on a running loop.

    Options: `ca` and `token_file` (files), `token_in_clear=true` (send the token over plain HTTP),
    `only_named=true` (ask no controller that the URL doesn't name, for a client behind forwarded
    ports), `client_name`. Raises ConfigError.
    """
    settings.refuse_unknown_options(*OPTIONS)
    if not settings.endpoints or settings.path:
        raise ConfigError("name the controllers, as in quorum+http://c1:9093,c2:9093")
    auth = settings.auth
    if auth is not None and (auth.username or auth.password or not auth.token):
        raise ConfigError("controllers take a token: auth=Auth(token=…), or a TLS certificate")
    token = read_token(settings) if auth is None else auth.token
    in_clear = settings.options.get("token_in_clear") == "true"
    if token is not None and not settings.secure and not in_clear:
        raise ConfigError(
            "the token isn't sent over plain HTTP, where others can read it; use quorum+https, "
            "or allow it with token_in_clear=true"
        )
    tls = settings.ssl
    if settings.secure and "ca" in settings.options:
        try:
            tls = client_context(Path(settings.options["ca"]))
        except TlsFilesError as error:
            raise ConfigError(str(error)) from error
    if tls is not None and token is not None:
        # A token goes only to a server that proves to be a controller.
        ControllerProof().demand(tls)
    scheme = "https" if settings.secure else "http"
    urls = [f"{scheme}://{endpoint}" for endpoint in settings.endpoints]
    requester = HttpRequester(log=structlog.get_logger(), tls=tls, token=token)
    requests = ControllerRequests(
        urls,
        requester,
        settings.clock,
        settings.dice,
        settings.request_timeout_s,
        only_named=settings.options.get("only_named") == "true",
    )
    client_name = settings.options.get("client_name", "")
    return QuorumBackend(requests, client_name, requester.close)


def read_token(settings: BackendSettings) -> str | None:
    """Return the token of the option `token_file`. Raises ConfigError."""
    path = settings.options.get("token_file")
    try:
        return None if path is None else Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"the token file can't be read: {error}") from error
