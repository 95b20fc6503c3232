"""`status` and `up` with controllers that answer late, or with something unexpected."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.cluster_view import observe
from logberg.commands.status import tables
from logberg.local.ports import free_port_base
from metadata.messages.quorum import StatusReply

ID = "a56gvmS4SxGveceV7e6XOQ"
STATUS = msgspec.to_builtins(
    StatusReply(
        ID, 1, "0.2.0", "leader", True, 1, 3, None, 0, 9, 9, 3, 0, "aa", "bb", "cc", {}, 1, 2, 0
    )
)
LATE = object()
"""No answer before the client gives up."""
SLOW_LATE = pytest.param(LATE, marks=pytest.mark.slow)


@asynccontextmanager
async def controller(status: Any, brokers: Any) -> AsyncIterator[tuple[LogbergClient, str]]:
    """A client, and the URL of a server that gives these answers."""

    async def give(answer: Any) -> web.Response:
        if answer is LATE:
            await asyncio.sleep(60)
        code = answer if isinstance(answer, int) else 200
        return web.json_response(answer, status=code)

    async def on_status(_: web.Request) -> web.Response:
        return await give(status)

    async def on_brokers(_: web.Request) -> web.Response:
        return await give(brokers)

    app = web.Application()
    app.add_routes([web.get("/v1/status", on_status), web.get("/v1/brokers", on_brokers)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port_base()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    url = f"http://127.0.0.1:{port}"
    try:
        async with LogbergClient([url]) as client:
            yield client, url
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("brokers", [SLOW_LATE, 503, 421, 500, [], {"brokers": None}, "text"])
async def test_a_leader_that_does_not_tell_its_brokers_is_shown_without(brokers):
    async with controller(STATUS, brokers) as (client, url):
        found = await observe(client, (url,))
    assert found.active == 1
    assert found.brokers == ()
    assert found.known_brokers is None
    assert not found.is_ready(1)
    assert tables(found)


@pytest.mark.parametrize("status", [SLOW_LATE, 503, 421, 500, [], {}, "text", {"role": "leader"}])
async def test_who_gives_no_status_is_shown_as_down(status):
    async with controller(status, {"brokers": []}) as (client, url):
        found = await observe(client, (url,))
    assert found.active is None
    assert [view.role for view in found.controllers] == ["down"]
    assert found.controllers[0].note
    assert tables(found)


async def test_one_controller_that_is_late_is_a_client_error():
    async with controller(LATE, LATE) as (client, url):
        with pytest.raises(ClientError):
            await client.from_one(url, "/v1/status", StatusReply, deadline_s=0.1)


async def test_the_json_of_a_view_has_the_fields_of_the_answers():
    async with controller(STATUS, {"offset": 9, "epoch": 3, "brokers": []}) as (client, url):
        found = (await observe(client, (url, "http://127.0.0.1:1"))).to_json()
    assert found.pop("controllers") == [
        {"url": url, **STATUS},
        {
            "url": "http://127.0.0.1:1",
            "role": "down",
            "active": False,
            "note": "http://127.0.0.1:1 does not answer: Cannot connect to host 127.0.0.1:1 "
            "ssl:default [Connect call failed ('127.0.0.1', 1)]",
        },
    ]
    assert found == {
        "clusterId": ID,
        "active": 1,
        "epoch": 3,
        "brokers": (),
        "brokersKnown": True,
    }
