"""A ZooKeeper for the tests of each module, and backends on it."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from benchmarks.peers.tools import NoToolError
from coordination.backend import Auth, BackendSettings
from coordination.backends.zookeeper.backend import ZooKeeperBackend
from runtime.asyncio_clock import of_running_loop
from runtime.randomness import from_system, seeded
from tests.coordination.servers.tier import not_run_reason
from tests.coordination.servers.zookeeper import ZooKeeperServers

TTL_S = 1.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    reason = not_run_reason()
    if reason is not None:
        pytest.skip(reason)
    try:
        started = ZooKeeperServers(tmp_path_factory.mktemp("zookeeper"))
    except NoToolError as error:
        pytest.skip(f"not run: {error}")
    started.start()
    yield started
    started.stop()


MakeBackend = Callable[..., ZooKeeperBackend]


@pytest.fixture
async def new_backend(servers: ZooKeeperServers) -> AsyncIterator[MakeBackend]:
    """Makes backends, all below one root of this test's own; they are closed at its end."""
    root = f"test-{from_system().getrandbits(48):x}"
    made: list[ZooKeeperBackend] = []

    def make(
        user: Auth | None = None, endpoints: list[str] | None = None, **options: str
    ) -> ZooKeeperBackend:
        settings = BackendSettings(
            "zookeeper",
            tuple(endpoints or servers.endpoints),
            root,
            3.0,
            of_running_loop(),
            seeded(len(made)),
            auth=user,
            options=options,
        )
        made.append(ZooKeeperBackend(settings))
        return made[-1]

    yield make
    for backend in made:
        await backend.aclose()


@pytest.fixture
async def backend(new_backend: MakeBackend) -> ZooKeeperBackend:
    opened = new_backend()
    await opened.open()
    return opened
