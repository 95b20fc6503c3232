"""The agent's own listeners: HTTP, and a listener of another protocol beside it, if one is given.

Rule: both listen before the agent asks to be online, so that a client who learns of the broker
reaches it. Both share one memory budget for strangers, one log of refusals, and the certificates.
"""

import ssl
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple, Protocol

import structlog

from broker_agent.agent import AgentCore
from broker_agent.api import AgentApi
from broker_agent.opened_secrets import Secrets
from broker_agent.people import AgentPeople
from metadata.credentials import judged_by, may_expire
from metadata.image import MetadataImage
from runtime.clock import Clock
from runtime.http.callers import Authenticate
from runtime.http.requests import OnError, Reply, Request
from runtime.http.server import HttpServer
from runtime.metrics import Registry
from runtime.randomness import Random
from runtime.sockets.judging import ConnectionJudge, Judged


class LentParts(NamedTuple):
    """What an agent lends to the listener beside its HTTP server."""

    core: AgentCore
    handle: Callable[[Request, Callable[[Reply], None]], None]
    """Answers a request as the HTTP server would; the caller of the request is believed."""
    secrets: Secrets
    people: AgentPeople
    http: HttpServer
    registry: Registry
    clock: Clock
    random: Random
    log: structlog.typing.FilteringBoundLogger


class OtherListener(Protocol):
    """A listener of another protocol than HTTP."""

    def start(self) -> None:
        """Listen. Raises InsecureListenerError, and OSError that says what to do."""

    def stop(self) -> None:
        """End all connections."""

    def reload_tls(self, context: ssl.SSLContext) -> None:
        """Use other certificates for connections that begin from now on."""

    def judging(self) -> Generator[None, None, int]:
        """End the connections of callers that would be refused now; return how many. In steps."""


class OwnServer(NamedTuple):
    """The agent's own HTTP listener: health, metrics, metadata for clients, forwarding."""

    host: str
    port: int
    authenticate: Authenticate
    on_error: OnError
    tls: ssl.SSLContext | None = None
    insecure_network: bool = False
    forward_anonymous: bool = False
    """Also forward requests of callers that are not authenticated. For clusters that require no
    authentication."""
    host_socket: Path | None = None
    """Also listen on this unix socket, for a host in another process of the same user."""
    beside: Callable[[LentParts, ssl.SSLContext | None], OtherListener] | None = None
    """Makes the listener beside HTTP, which has the same TLS context; None: there is none."""
    follow: Callable[[Callable[[], MetadataImage]], None] = lambda _image: None
    """Gets what returns the agent's newest image, for whoever judges credentials by it."""
    show: Callable[[Registry], None] = lambda _registry: None
    """Adds the figures of the process to the agent's metrics."""


class OwnListeners:
    """The listeners of one agent."""

    def __init__(
        self,
        own: OwnServer,
        core: AgentCore,
        api: AgentApi,
        secrets: Secrets,
        people: AgentPeople,
        *,
        clock: Clock,
        random: Random,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """To be made on a running loop."""
        self.http = HttpServer(
            api.handle,
            own.host,
            own.port,
            authenticate=own.authenticate,
            on_error=own.on_error,
            log=log,
            tls=own.tls,
            insecure_network=own.insecure_network,
            unix_socket=own.host_socket,
            anonymous_paths=None if own.forward_anonymous else api.own_paths,
            passes_tokens=True,
        )
        own.show(api.registry)
        own.follow(lambda: core.image)
        self._judge = ConnectionJudge(
            clock,
            lambda: judged_by(core.image),
            lambda: may_expire(core.image),
            lambda ended: log.info("connections_judged", ended=ended),
        )
        self._beside: OtherListener | None = None
        if own.beside is not None:
            parts = LentParts(
                core, api.handle, secrets, people, self.http, api.registry, clock, random, log
            )
            self._beside = own.beside(parts, own.tls)

    def start(self) -> None:
        """Listen. Raises InsecureListenerError, and OSError that says what to do."""
        self.http.start()
        doors: list[Judged] = [self.http]
        if self._beside is not None:
            self._beside.start()
            doors.append(self._beside)
        self._judge.begin(doors)

    async def stop(self) -> None:
        """Accept no more connections and close all."""
        self._judge.end()
        if self._beside is not None:
            self._beside.stop()
        await self.http.stop()

    def reload_tls(self, context: ssl.SSLContext) -> None:
        """Use other certificates for connections that begin from now on."""
        self.http.reload_tls(context)
        if self._beside is not None:
            self._beside.reload_tls(context)
