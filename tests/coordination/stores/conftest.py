"""The stores of other makers, each as a real server, and backends on them.

Rule: a test asks for `backend` or `new_backend` and runs on each store.
"""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from coordination.backend import Auth, Backend, BackendFactory, BackendSettings
from coordination.backends.cassandra import make_backend as make_cassandra
from coordination.backends.zookeeper import make_backend as make_zookeeper
from runtime.asyncio_clock import of_running_loop
from runtime.randomness import from_system, seeded
from tests.coordination.servers.cassandra import CassandraServer
from tests.coordination.servers.tier import serving
from tests.coordination.servers.zookeeper import ZooKeeperServers

SERVERS: dict[str, tuple[Callable, BackendFactory]] = {
    "zookeeper": (ZooKeeperServers, make_zookeeper),
    "cassandra": (CassandraServer, make_cassandra),
}
REQUEST_TIMEOUT_S = 3.0


@pytest.fixture(scope="session", params=SERVERS)
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeperServers | CassandraServer]:
    make = SERVERS[request.param][0]
    with serving(lambda: make(tmp_path_factory.mktemp(request.param))) as started:
        yield started


MakeBackend = Callable[..., Backend]


@pytest.fixture
async def new_backend(servers: ZooKeeperServers) -> AsyncIterator[MakeBackend]:
    """Makes backends, all of them below this test's own root; they are closed at its end."""
    dice = from_system()
    root = f"test_{dice.getrandbits(48):x}"
    made: list[Backend] = []

    def make(
        user: Auth | None = None, endpoints: list[str] | None = None, **options: str
    ) -> Backend:
        settings = BackendSettings(
            servers.name,
            tuple(endpoints or servers.endpoints),
            root,
            REQUEST_TIMEOUT_S,
            of_running_loop(),
            seeded(dice.getrandbits(64)),
            auth=user or servers.user,
            options=options,
        )
        made.append(SERVERS[servers.name][1](settings))
        return made[-1]

    yield make
    for backend in made:
        await backend.aclose()


@pytest.fixture
async def backend(new_backend: MakeBackend) -> Backend:
    opened = new_backend()
    await opened.open()
    return opened
