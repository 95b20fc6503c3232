"""Coordination on etcd 3.4 or later: `etcd+http(s)://host:port,host:port/root`.

Rule: this class only puts the parts together. `sessions`, `resources`, `storage` and `watch` each
hold one idea; `gateway` asks the servers; `layout` says where everything stands.
"""

import asyncio
import contextlib
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
from coordination.backends.etcd import messages as wire
from coordination.backends.etcd.gateway import EtcdGateway
from coordination.backends.etcd.layout import EtcdLayout
from coordination.backends.etcd.proofs import EtcdProofs
from coordination.backends.etcd.resources import EtcdResources
from coordination.backends.etcd.sessions import EtcdSessions
from coordination.backends.etcd.storage import EtcdStorage
from coordination.backends.etcd.subscriptions import EtcdSubscriptions
from coordination.backends.etcd.watch import EtcdWatch
from coordination.errors import ConfigError
from coordination.http_servers import HttpServers
from coordination.types import Capabilities, Record, Revision, SessionId, Token

DEFAULT_PORT: Final = 2379

ETCD_CAPABILITIES: Final = Capabilities(
    history=True,
    txn=True,
    txn_scope="store",
    atomic_list=True,
    push_watch=True,
    # One and a half of etcd's default time-outs of an election, in whole seconds.
    min_ttl_s=2.0,
    max_ttl_s=9_000_000_000.0,
    ttl_resolution_s=1.0,
    # A request has 1.5 MiB at most, with the keys and the proof of the commit.
    max_value_bytes=1_572_864 - 16_384,
    max_key_bytes=1_024,
    # 128 for etcd; one of them is the proof.
    max_txn_operations=127,
    fencing_scope="store",
    linearizable_reads=True,
    leader_failover=False,
    # etcd looks for ended leases twice a second, and revokes them by its log.
    expiry_slack_s=1.5,
)
"""Of a single server; a cluster of several also has `leader_failover`."""


class EtcdBackend:
    """`coordination.backend.Backend` on etcd."""

    def __init__(self, settings: BackendSettings) -> None:
        """Take the settings; connect nothing yet. Raises ConfigError."""
        settings.refuse_unknown_options()
        if not settings.endpoints:
            raise ConfigError("an etcd URL needs a host: etcd+http://host:2379")
        scheme = "https" if settings.secure else "http"
        self._timeout_s = settings.request_timeout_s
        servers = HttpServers(
            "etcd",
            tuple(f"{scheme}://{_with_port(host)}" for host in settings.endpoints),
            timeout_s=settings.request_timeout_s,
            clock=settings.clock,
            ssl=settings.ssl,
        )
        self._gateway = EtcdGateway(servers, settings.auth)
        self._layout = EtcdLayout(settings.path)
        self._sessions = EtcdSessions(self._gateway, self._layout, settings.dice)
        self._resources = EtcdResources(self._gateway, self._layout)
        self._proofs = EtcdProofs(self._sessions, self._layout, settings.clock, settings.dice)
        self._storage = EtcdStorage(self._gateway, self._layout, self._resources, self._proofs)
        self._subscriptions = EtcdSubscriptions(self._gateway)
        self._capabilities = ETCD_CAPABILITIES

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def open(self) -> None:
        try:
            await self._gateway.open()
            listed = await self._gateway.ask(
                "/v3/cluster/member/list", wire.EmptyRequest(), wire.MemberListReply
            )
        except BaseException:
            await self._gateway.aclose()
            raise
        several = len(listed.members) > 1
        self._capabilities = dataclasses.replace(ETCD_CAPABILITIES, leader_failover=several)

    async def aclose(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timeout_s):
                await self._subscriptions.aclose()
        await self._gateway.aclose()

    async def open_session(self, ttl_s: float) -> OpenedSession:
        return await self._sessions.open(ttl_s)

    async def renew(self, session: SessionId) -> float:
        return await self._sessions.renew(session)

    async def end_session(self, session: SessionId) -> None:
        await self._sessions.end(session)
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
        return self._storage.pages(prefix, keys_only=keys_only, page=page)

    async def commit(self, commit: Commit) -> Committed:
        return await self._storage.commit(commit)

    def watch(self, scope: WatchScope, after: Revision | None) -> EtcdWatch:
        return EtcdWatch(scope, after, self._gateway, self._layout, self._subscriptions)


def _with_port(host: str) -> str:
    """Add etcd's own port to a host that has none."""
    has_port = ":" in host.rpartition("]")[2]
    return host if has_port else f"{host}:{DEFAULT_PORT}"
