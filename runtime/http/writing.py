"""Writes the head of a response, and the pieces of a body whose length is not known yet.

Rule: a header that a handler gave cannot end the head or begin another header: one with a line end
is refused as a defect.
"""

import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from runtime.http.content_digest import CONTENT_DIGEST, content_digest
from runtime.http.requests import Reply

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
_BEGINNINGS: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n"
    "Server: logberg\r\nX-Content-Type-Options: nosniff\r\n"
    for status in HTTPStatus
}
_WITHOUT_BODY: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class ResponseHeads:
    """Writes the heads of one server's responses."""

    def __init__(self) -> None:
        self._second = -1
        self._date = ""

    def whole(self, reply: Reply, connection: str) -> bytes:
        """Return the head of a reply whose body is known. `connection`: see `head`."""
        body = reply.body
        if reply.status in _WITHOUT_BODY:
            return self.head(reply, connection, "")
        if not body:
            return self.head(reply, connection, "Content-Length: 0\r\n")
        digest = content_digest(body)
        framing = f"Content-Length: {len(body)}\r\n{CONTENT_DIGEST}: {digest}\r\n"
        return self.head(reply, connection, framing)

    def head(self, reply: Reply, connection: str, framing: str) -> bytes:
        """Return a head. `connection` and `framing` are whole header lines, or nothing."""
        given = _lines_of(tuple(reply.headers.items()))
        if reply.body and "content-type" not in reply.headers:
            given += "content-type: application/octet-stream\r\n"
        beginning = _BEGINNINGS.get(reply.status) or _unknown(reply.status)
        return f"{beginning}{self._date_line()}{framing}{connection}{given}\r\n".encode()

    def _date_line(self) -> str:
        now = int(time.time())
        if now != self._second:
            self._second = now
            self._date = f"Date: {formatdate(now, usegmt=True)}\r\n"
        return self._date


@lru_cache(maxsize=256)
def _lines_of(headers: tuple[tuple[str, str], ...]) -> str:
    """Return headers as lines. Raises ValueError for a header with a line end.

    Remembers the last ones, since most replies have the same few headers.
    """
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    count = len(headers)
    if lines.count("\n") != count or lines.count("\r") != count or "\0" in lines:
        raise ValueError(f"a header of the reply has a line end: {lines[:200]!r}")
    return lines


def chunk(piece: bytes) -> bytes:
    """Return a piece of a body as a chunk; a chunk of no bytes would end the body."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def _unknown(status: int) -> str:
    return f"HTTP/1.1 {status} \r\nServer: logberg\r\nX-Content-Type-Options: nosniff\r\n"
