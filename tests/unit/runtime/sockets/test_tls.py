"""TLS contexts from files: what is refused, and with which message."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from runtime.sockets.tls import (
    BUFFER_BYTES,
    TlsFiles,
    TlsFilesError,
    client_context,
    peer_tls,
    server_context,
    uri_of_peer,
)
from tests.unit.runtime.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[str | None, str | None]:
    """Shake hands in memory; return the URIs that (server, client) see of each other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    s = server.wrap_bio(to_server, to_client, server_side=True)
    c = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    waiting = [c, s, c, s]
    for side in waiting:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert s.version() == c.version() == "TLSv1.3"
    return uri_of_peer(s), uri_of_peer(c)


def test_peers_see_each_others_uri(authority: Authority) -> None:
    one = peer_tls(authority.issue("logberg://c/controller/1", "one"))
    two = peer_tls(authority.issue("logberg://c/controller/2", "two"))
    assert handshake(one.server, two.client) == (
        "logberg://c/controller/2",
        "logberg://c/controller/1",
    )


def test_between_peers_a_certificate_is_required(authority: Authority) -> None:
    server = peer_tls(authority.issue("logberg://c/controller/1")).server
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        handshake(server, client_context(authority.path))


def test_an_http_client_may_come_without_a_certificate(authority: Authority) -> None:
    server = server_context(authority.issue("logberg://c/controller/1"))
    seen, _ = handshake(server, client_context(authority.path))
    assert seen is None


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_certificate_of_another_authority_is_refused(
    authority: Authority, tmp_path: Path, who: str
) -> None:
    other = Authority(tmp_path / "other", "another CA")
    ours = peer_tls(authority.issue("logberg://c/controller/1"))
    theirs_files = other.issue("logberg://c/controller/2")
    theirs = peer_tls(theirs_files._replace(ca=authority.path))
    pair = (ours.server, theirs.client) if who == "client" else (theirs.server, ours.client)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(*pair)


def test_older_tls_is_refused(authority: Authority) -> None:
    client = client_context(authority.path)
    client.minimum_version = ssl.TLSVersion.TLSv1_2
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol"):
        handshake(server_context(authority.issue(None)), client)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(authority: Authority, mode: int) -> None:
    files = authority.issue(None)
    files.key.chmod(mode)
    with pytest.raises(TlsFilesError, match=f"can be read by others.*run chmod 600 {files.key}"):
        server_context(files)


@pytest.mark.parametrize("field", ["cert", "key", "ca"])
def test_a_missing_file_is_named(authority: Authority, tmp_path: Path, field: str) -> None:
    files = authority.issue(None)._replace(**{field: tmp_path / "absent.pem"})
    with pytest.raises(TlsFilesError, match=r"absent\.pem cannot be read: No such file"):
        server_context(files)


@pytest.mark.parametrize("field", ["cert", "key", "ca"])
def test_a_file_with_something_else_in_it_is_named(
    authority: Authority, tmp_path: Path, field: str
) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.touch(mode=0o600)
    garbage.write_text("not a certificate")
    files = authority.issue(None)._replace(**{field: garbage})
    with pytest.raises(TlsFilesError, match=r"garbage\.pem"):
        server_context(files)


def test_a_key_of_another_certificate_is_refused(authority: Authority) -> None:
    one, two = authority.issue(None, "one"), authority.issue(None, "two")
    with pytest.raises(TlsFilesError, match="cannot be used together"):
        server_context(TlsFiles(one.cert, two.key, one.ca))


def test_a_key_with_a_password_does_not_ask_the_terminal(authority: Authority) -> None:
    files = authority.issue(None)
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(TlsFilesError, match="without a password"):
        server_context(files)


def test_a_certificate_without_a_uri_has_none(authority: Authority) -> None:
    server = server_context(authority.issue(None, "server"))
    client = client_context(authority.path, authority.issue(None, "client"))
    assert handshake(server, client) == (None, None)
    assert uri_of_peer(None) is None


async def test_a_tls_connection_has_a_small_buffer(authority: Authority) -> None:
    context = server_context(authority.issue(None))
    made: list[Any] = []

    class Taken(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)

    server = await asyncio.get_running_loop().create_server(Taken, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(authority.path))
    async with asyncio.timeout(5):
        while not made:  # noqa: ASYNC110 - a condition, not an event
            await asyncio.sleep(0.001)
    protocol = made[0]._ssl_protocol
    assert len(protocol._ssl_buffer) == BUFFER_BYTES < 64 * 1024
    made[0].abort()
    writer.close()
    server.close()
