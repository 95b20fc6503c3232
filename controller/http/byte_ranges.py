"""Ranges of bytes in requests and answers (header `range`), so that a transfer can be resumed."""

import re
from typing import Final

from metadata.errors import ErrorCode, LogbergError
from runtime.http.requests import Reply, Request

PIECE_BYTES: Final = 1024 * 1024
"""The most bytes in one answer."""
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")


def range_of(request: Request) -> tuple[int, int]:
    """Return the position and the length that a request asks for.

    Raises LogbergError INVALID_REQUEST.
    """
    text = request.headers.get("range", "")
    if not text:
        return 0, PIECE_BYTES
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"header range: {text[:80]!r}; give bytes=<from>-<to>"
        )
    start = int(match[1])
    end = int(match[2]) if match[2] else start + PIECE_BYTES - 1
    if end < start:
        raise LogbergError(ErrorCode.INVALID_REQUEST, "header range: its end is before its begin")
    return start, min(end - start + 1, PIECE_BYTES)


def ranged(position: int, data: bytes, size: int) -> Reply:
    """Return the answer with the bytes at a position of a file of this size."""
    headers = {
        "content-type": "application/octet-stream",
        "content-range": f"bytes {position}-{position + len(data) - 1}/{size}",
        "accept-ranges": "bytes",
    }
    if not data:
        headers["content-range"] = f"bytes */{size}"
    return Reply(206, data, headers)
