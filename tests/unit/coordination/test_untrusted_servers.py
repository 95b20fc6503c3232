"""Stores over HTTPS whose certificate the client doesn't accept: refused at once."""

import datetime as dt
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from coordination.connect import connect
from coordination.errors import AuthFailed
from logberg.local.local_ca import LocalCertificateAuthority
from runtime.sockets.tls import client_context

REQUEST_S = 30.0
AT_ONCE_S = 10.0
"""Far less than a request may take."""


def authority(folder: Path) -> LocalCertificateAuthority:
    return LocalCertificateAuthority(folder, "store", dt.datetime.now(dt.UTC))


@asynccontextmanager
async def server(own: LocalCertificateAuthority, seen: list[str]) -> AsyncIterator[str]:
    """A server of HTTPS that notes what it is asked."""

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.json_response({}, status=401)

    cert, key = own.issue("store", "https://store")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield "{}:{}".format(*runner.addresses[0])
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("scheme", ["etcd+https", "consul+https", "quorum+https"])
async def test_a_certificate_of_another_authority_is_refused_at_once(
    scheme: str, tmp_path: Path
) -> None:
    theirs, others = authority(tmp_path / "theirs"), authority(tmp_path / "others")
    seen: list[str] = []
    async with server(theirs, seen) as first, server(theirs, seen) as second:
        hosts = first if scheme.startswith("consul") else f"{first},{second}"
        began = time.monotonic()
        with pytest.raises(AuthFailed, match="certificate"):
            await connect(
                f"{scheme}://{hosts}",
                ssl=client_context(others.ca_path),
                request_timeout=REQUEST_S,
                ttl=60.0,
            )
        assert time.monotonic() - began < AT_ONCE_S
    assert seen == []
