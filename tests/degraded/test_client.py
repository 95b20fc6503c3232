"""The command line's client does as a controller that has too much to do tells it."""

import asyncio
import json
import time

from logberg.client.client import LogbergClient
from runtime.http.requests import Reply
from tests.unit.runtime.http.http_kit import Asked, make_server

WAIT_MS = 300


def refusal(url: str) -> Reply:
    body = {"code": "THROTTLED", "message": "later", "retryAfterMs": WAIT_MS, "leaderUrl": url}
    return Reply(429, json.dumps(body).encode(), {"content-type": "application/json"})


def test_who_is_turned_away_waits_as_told_and_asks_the_same_one_with_the_same_id() -> None:
    handler = Asked()

    async def main() -> float:
        server = make_server(handler)
        server.start()
        url = f"http://127.0.0.1:{server.port}"
        handler.answer = refusal(url)
        asyncio.get_running_loop().call_later(
            WAIT_MS / 2000, setattr, handler, "answer", Reply(200, b"{}")
        )
        began = time.monotonic()
        async with LogbergClient([url]) as client:
            assert await client.change("POST", "/v1/topics", dict, {}) == {}
        took = time.monotonic() - began
        await server.stop()
        return took

    assert asyncio.run(main()) >= WAIT_MS / 1000
    assert len(handler.requests) == 2
    ids = {request.headers["x-logberg-request-id"] for request in handler.requests}
    assert len(ids) == 1
