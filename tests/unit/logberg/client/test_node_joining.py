"""A node that joins believes nobody but the authority that its token names, and shows no token."""

import asyncio
import datetime as dt
import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from logberg.client.client_errors import ClientError
from logberg.client.drawn_tokens import (
    JoinToken,
    draw_access_token,
    draw_join_secret,
    kept_join_secret,
    kept_token,
)
from logberg.client.node_joining import JoinError, join_cluster
from logberg.local.local_ca import LocalCertificateAuthority
from metadata.credentials import malformed
from runtime.disk.secret_file import SecretFileError

Answer = tuple[int, Any]


class Impostor:
    """A server that answers as it is told, and keeps what it was shown."""

    def __init__(self, folder: Path) -> None:
        authority = LocalCertificateAuthority(folder, "c", dt.datetime.now(dt.UTC))
        cert, key = authority.issue("controller-1", "quorum://c/1")
        self.pem = authority.ca_path.read_bytes()
        der = x509.load_pem_x509_certificate(self.pem).public_bytes(serialization.Encoding.DER)
        self.fingerprint = sha256(der).hexdigest()
        self.shown: list[str] = []
        self.answer: Callable[[str], Answer] = lambda _path: (500, {})
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                outer.shown.append(self.headers.get("authorization", ""))
                self.rfile.read(int(self.headers.get("content-length", "0")))
                status, body = outer.answer(self.path)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = _answer  # noqa: N815 - the library's names

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def authority(self, path: str) -> Answer:
        """Answer with the right authority, and refuse all else."""
        if path == "/v1/authority":
            return 200, {"certificate": b64encode(self.pem).decode(), "sha256": self.fingerprint}
        return 401, {"code": "UNAUTHENTICATED", "message": "used", "retriable": False}


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[Impostor]:
    server = Impostor(tmp_path / "ca")
    yield server
    server.close()


def join(url: str, token: JoinToken, folder: Path) -> Any:
    return asyncio.run(join_cluster([url], token, folder, 5.0))


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"\xff\x00", "no authority's certificate"),
        (200, {"certificate": "AAAA", "sha256": "00"}, "no authority's certificate"),
        (200, {}, "no authority's certificate"),
        (403, {"code": "SECURITY_DISABLED", "message": "not here"}, "not here"),
        (302, b"", "no authority's certificate"),
        (200, b"[" * 100_000, "no authority's certificate"),
    ],
)
def test_a_bad_answer_ends_the_joining_and_shows_no_token(
    impostor: Impostor, tmp_path: Path, status: int, body: Any, said: str
) -> None:
    impostor.answer = lambda _path: (status, body)
    token = JoinToken(draw_join_secret(), impostor.fingerprint)
    with pytest.raises(JoinError, match=said):
        join(impostor.url, token, tmp_path / "node")
    assert impostor.shown == [""]
    assert not (tmp_path / "node").exists()


def test_another_authority_is_not_believed(impostor: Impostor, tmp_path: Path) -> None:
    impostor.answer = impostor.authority
    with pytest.raises(JoinError, match="another fingerprint"):
        join(impostor.url, JoinToken(draw_join_secret(), "0" * 64), tmp_path / "node")
    assert impostor.shown == [""]


def test_a_refusal_leaves_the_key_for_another_try(impostor: Impostor, tmp_path: Path) -> None:
    impostor.answer = impostor.authority
    token = JoinToken(draw_join_secret(), impostor.fingerprint)
    folder = tmp_path / "node"
    with pytest.raises(ClientError, match="used"):
        join(impostor.url, token, folder)
    assert impostor.shown[-1] == f"Bearer {token.secret}"
    key = (folder / "node.key").read_bytes()
    assert (folder / "node.key").stat().st_mode & 0o077 == 0
    with pytest.raises(ClientError):
        join(impostor.url, token, folder)
    assert (folder / "node.key").read_bytes() == key
    (folder / "node.key").chmod(0o644)
    with pytest.raises(SecretFileError, match="others than its user"):
        join(impostor.url, token, folder)


def test_a_token_is_not_sent_in_clear_and_a_node_joins_once(tmp_path: Path) -> None:
    token = JoinToken(draw_join_secret(), "0" * 64)
    with pytest.raises(JoinError, match="https:// only"):
        join("http://127.0.0.1:1", token, tmp_path)
    with pytest.raises(JoinError, match="no answer"):
        join("https://127.0.0.1:1", token, tmp_path)
    (tmp_path / "node.crt").write_text("")
    with pytest.raises(JoinError, match="has joined"):
        join("https://127.0.0.1:1", token, tmp_path)


def test_tokens_have_the_form_that_scanners_look_for() -> None:
    for token in (draw_access_token(), draw_join_secret()):
        assert malformed(token) == ""
    assert draw_access_token() != draw_access_token()


@pytest.mark.parametrize("text", ["", "lgbj_x.00", "lgb_" + "a" * 43 + "." + "0" * 64, "x" * 400])
def test_what_is_no_join_token_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match="no join token, or a part of one") as error:
        JoinToken.parse(text)
    assert not text or text not in str(error.value)


def test_a_join_token_is_read_as_it_was_written() -> None:
    token = JoinToken(draw_join_secret(), "a" * 64)
    assert JoinToken.parse(token.text + "\n") == token
    assert token.secret not in repr(token)


def test_a_file_keeps_its_token_and_is_for_its_user_only(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token, drawn = kept_token(file)
    assert drawn
    assert file.stat().st_mode & 0o777 == 0o600
    assert kept_token(file) == (token, False)
    with pytest.raises(SecretFileError, match="holds no join token"):
        kept_join_secret(file)
    file.chmod(0o640)
    with pytest.raises(SecretFileError, match="others than its user"):
        kept_token(file)
