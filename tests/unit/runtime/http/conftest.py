"""HTTP servers for the tests of this room, each stopped at its test's end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from runtime.http.server import HttpServer
from tests.unit.runtime.http.http_kit import Asked, make_server


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
async def serve(asked: Asked) -> AsyncIterator[Callable[..., HttpServer]]:
    servers: list[HttpServer] = []

    def start(**more: Any) -> HttpServer:
        server = make_server(asked, **more)
        server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop(0.05)
    await asyncio.sleep(0)
