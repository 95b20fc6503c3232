"""Coordination on Consul 1.13 or later: `consul+http(s)://:token@host:port,host:port/root`.

Rule: this class only puts the parts together. What Consul has and lacks stands in the declared
capabilities; `docs/coordination/consul.md` says how each of KIP-30's needs is met.
"""

import dataclasses
from collections.abc import AsyncIterator
from typing import Final

from coordination.backend import (
    BackendSettings,
    Claim,
    Commit,
    Committed,
    OpenedSession,
    RecordPage,
    Resource,
    ResourceEntries,
    ResourceEntry,
    WatchScope,
)
from coordination.backends.consul.gateway import ConsulGateway
from coordination.backends.consul.layout import ConsulLayout
from coordination.backends.consul.polls import ConsulPolls
from coordination.backends.consul.proofs import ConsulProofs
from coordination.backends.consul.resources import ConsulResources
from coordination.backends.consul.sessions import ConsulSessions
from coordination.backends.consul.storage import ConsulStorage
from coordination.backends.consul.watch import ConsulWatch
from coordination.errors import ConfigError
from coordination.http_servers import HttpServers
from coordination.types import Capabilities, Record, Revision, SessionId, Token

DEFAULT_PORT: Final = 8500
SMALLEST_TTL_S: Final = 10.0
"""Unless the servers' `session_ttl_min` is less, and the option `min_ttl` says so."""
_EXPIRY_S: Final = 1.0
"""Consul ends a session within this time after two ttls."""

CONSUL_CAPABILITIES: Final = Capabilities(
    history=False,
    txn=True,
    txn_scope="store",
    atomic_list=True,
    push_watch=True,
    min_ttl_s=SMALLEST_TTL_S,
    max_ttl_s=86_400.0,
    ttl_resolution_s=0.001,
    # A transaction has 512 KiB at most, with its values in base64.
    max_value_bytes=(512 - 8) * 1024 * 3 // 4,
    max_key_bytes=1_024,
    # 64 for Consul; two of them are the proof.
    max_txn_operations=62,
    fencing_scope="store",
    linearizable_reads=True,
    leader_failover=False,
    expiry_slack_s=SMALLEST_TTL_S + _EXPIRY_S,
    lock_delay_s=0.0,
)
"""Of a single server and sessions of the smallest ttl."""


class ConsulBackend:
    """`coordination.backend.Backend` on Consul."""

    def __init__(self, settings: BackendSettings) -> None:
        """Take the settings; connect nothing yet. Raises ConfigError."""
        settings.refuse_unknown_options("min_ttl")
        if not settings.endpoints:
            raise ConfigError("a Consul URL needs a host: consul+http://host:8500")
        scheme = "https" if settings.secure else "http"
        servers = HttpServers(
            "Consul",
            tuple(f"{scheme}://{_with_port(host)}" for host in settings.endpoints),
            timeout_s=settings.request_timeout_s,
            clock=settings.clock,
            ssl=settings.ssl,
        )
        auth = settings.auth
        token = (auth.token or auth.password) if auth is not None else ""
        self._gateway = ConsulGateway(servers, token)
        self._layout = ConsulLayout(settings.path)
        self._sessions = ConsulSessions(self._gateway)
        self._resources = ConsulResources(self._gateway, self._layout)
        self._proofs = ConsulProofs(self._sessions, self._layout, settings.clock, settings.dice)
        self._storage = ConsulStorage(
            self._gateway, self._layout, self._resources, self._proofs, settings.clock
        )
        self._polls = ConsulPolls(self._gateway)
        self._ttl_s: dict[SessionId, float] = {}
        smallest = _seconds("min_ttl", settings.options.get("min_ttl", str(SMALLEST_TTL_S)))
        self._capabilities = dataclasses.replace(
            CONSUL_CAPABILITIES, min_ttl_s=smallest, expiry_slack_s=smallest + _EXPIRY_S
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def open(self) -> None:
        self._gateway.servers.open()
        try:
            await self._gateway.read(self._layout.key(""), recurse=False)
            peers = await self._gateway.ask("/v1/status/peers", tuple[str, ...])
        except BaseException:
            await self._gateway.servers.aclose()
            raise
        several = peers is not None and len(peers) > 1
        self._capabilities = dataclasses.replace(self._capabilities, leader_failover=several)

    async def aclose(self) -> None:
        await self._polls.aclose()
        await self._gateway.servers.aclose()

    async def open_session(self, ttl_s: float) -> OpenedSession:
        opened = await self._sessions.open(ttl_s)
        self._ttl_s[opened.id] = opened.ttl_s
        # A silent session may live for two ttls.
        slack = max(self._capabilities.expiry_slack_s, opened.ttl_s + _EXPIRY_S)
        self._capabilities = dataclasses.replace(self._capabilities, expiry_slack_s=slack)
        return opened

    async def renew(self, session: SessionId) -> float:
        await self._sessions.renew(session)
        return self._ttl_s.get(session, self._capabilities.min_ttl_s)

    async def end_session(self, session: SessionId) -> None:
        await self._sessions.end(session)
        self._ttl_s.pop(session, None)
        self._proofs.forget(session)

    async def enter(self, claim: Claim) -> ResourceEntry:
        return await self._resources.enter(claim)

    async def change(
        self, resource: Resource, id_: str, session: SessionId, data: bytes
    ) -> Revision:
        return await self._resources.change(resource, id_, session, data)

    async def leave(
        self, resource: Resource, id_: str, session: SessionId, token: Token | None
    ) -> bool:
        return await self._resources.leave(resource, id_, session, token)

    async def break_grant(self, resource: Resource) -> bool:
        return await self._resources.break_grant(resource)

    async def entries(self, resource: Resource) -> ResourceEntries:
        return await self._resources.entries(resource)

    async def get(self, key: str, *, stale: bool = False) -> Record | None:
        return await self._storage.get(key, stale=stale)

    def pages(self, prefix: str, *, keys_only: bool, page: int) -> AsyncIterator[RecordPage]:
        return self._storage.pages(prefix, page=page)

    async def commit(self, commit: Commit) -> Committed:
        return await self._storage.commit(commit)

    def watch(self, scope: WatchScope, after: Revision | None) -> ConsulWatch:
        return ConsulWatch(scope, after, self._layout, self._polls)


def _with_port(host: str) -> str:
    """Add Consul's own port to a host that has none."""
    has_port = ":" in host.rpartition("]")[2]
    return host if has_port else f"{host}:{DEFAULT_PORT}"


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ConfigError(f"{name}={text} is no number of seconds; write one, such as {name}=10")
    return seconds
