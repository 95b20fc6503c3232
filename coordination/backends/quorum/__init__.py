"""Coordination on Logberg's own controllers: every session, entry and key is in the metadata log.

`quorum+https://c1:9093,c2:9093,c3:9093`, or `quorum+http` without TLS. `asking` finds the leader
and repeats requests safely, `joining` puts changes of one moment into one request, `refusals` turns
answers into errors, `connection` is the backend, and `polling` asks for the news of many watches in
one request. `credentials` says whom it trusts, and who it is.
"""

import structlog

from coordination.backend import Backend, BackendSettings
from coordination.backends.quorum.asking import ControllerRequests
from coordination.backends.quorum.connection import QuorumBackend
from coordination.backends.quorum.credentials import (
    CREDENTIALS,
    tls_of,
    token_of,
)
from coordination.errors import ConfigError
from runtime.http.client import HttpRequester

OPTIONS = (*CREDENTIALS, "only_named", "client_name")


def make_backend(settings: BackendSettings) -> Backend:
    """Return a connection to the controllers of the URL. To be called on a running loop.

    Options: `ca`, `cert`, `key` and `token_file` (files), `cluster_id` (whose controllers get the
    token), `token_in_clear=true` (send the token over plain HTTP), `only_named=true` (ask no
    controller that the URL doesn't name, for a client behind forwarded ports), `client_name`.
    Raises ConfigError.
    """
    settings.refuse_unknown_options(*OPTIONS)
    if not settings.endpoints or settings.path:
        raise ConfigError("name the controllers, as in quorum+http://c1:9093,c2:9093")
    token = token_of(settings)
    tls = tls_of(settings, token)
    scheme = "https" if settings.secure else "http"
    urls = [f"{scheme}://{endpoint}" for endpoint in settings.endpoints]
    requester = HttpRequester(log=structlog.get_logger(), tls=tls, token=token)
    requests = ControllerRequests(
        urls,
        requester,
        settings.clock,
        settings.dice,
        settings.request_timeout_s,
        only_named=settings.options.get("only_named") == "true"
        # A token in clear goes to no server that another server named.
        or (token is not None and not settings.secure),
        shows_certificate="cert" in settings.options,
    )
    client_name = settings.options.get("client_name", "")
    return QuorumBackend(requests, client_name, requester.close)
