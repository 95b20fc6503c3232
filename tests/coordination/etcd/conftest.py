"""Real etcd servers for the tests of this folder, and clients of them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from coordination.backend import Auth, BackendSettings
from coordination.backends.etcd import make_backend
from coordination.backends.etcd.backend import EtcdBackend
from runtime.asyncio_clock import of_running_loop
from runtime.randomness import from_system
from tests.coordination.servers.etcd_servers import EtcdServers
from tests.coordination.servers.tier import serving


@pytest.fixture(scope="module")
def one_server(tmp_path_factory) -> Iterator[EtcdServers]:
    with serving(lambda: EtcdServers(tmp_path_factory.mktemp("etcd") / "one", 1)) as servers:
        yield servers


@pytest.fixture
def three_servers(tmp_path) -> Iterator[EtcdServers]:
    with serving(lambda: EtcdServers(tmp_path / "three", 3)) as servers:
        yield servers


@asynccontextmanager
async def client_of(
    *endpoints: str, timeout_s: float = 3.0, auth: Auth | None = None, path: str = "t"
) -> AsyncIterator[EtcdBackend]:
    backend = make_backend(
        BackendSettings(
            scheme="etcd+http",
            endpoints=endpoints,
            path=path,
            request_timeout_s=timeout_s,
            clock=of_running_loop(),
            dice=from_system(),
            auth=auth,
        )
    )
    await backend.open()
    try:
        yield backend
    finally:
        await backend.aclose()
