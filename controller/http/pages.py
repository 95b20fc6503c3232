"""Divides a long answer into pages that are all read from one image.

As in etcd, a page says where the next one begins, and all pages come from one offset. The token
holds that offset and the last key. The node keeps the image for a while, for a limited number of
readers. If the image is gone, the reader gets CONTINUATION_EXPIRED and begins again. It never sees
a mixture of states.

Images share what has not changed. So keeping an image costs only what has changed since.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from runtime.clock import Clock, Timer

CONTINUATION: Final = "continuation"
KEPT_S: Final = 60.0
"""How long an image is kept after its last page."""
KEPT_MAX: Final = 64
"""The most images that are kept. For a further one, the least recently used is dropped."""
TOKEN_CHARACTERS_MAX: Final = 4096


class _Token(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The content of a token."""

    of: str
    """Which list the token continues."""
    offset: int
    last: str | int
    """The last key of the page before."""


def token_text(image: MetadataImage, of: str, last: str | int) -> str:
    """Return the token for the page behind the key `last` of an image."""
    token = msgspec.msgpack.encode(_Token(of, image.offset, last))
    return urlsafe_b64encode(token).decode().rstrip("=")


class Pages:
    """Keeps images for readers of several pages."""

    def __init__(self, clock: Clock, released: Callable[[MetadataImage], None]) -> None:
        """`released` gets each image that is no longer kept."""
        self._clock = clock
        self._released = released
        self._kept: dict[int, tuple[MetadataImage, Timer]] = {}

    def token(self, image: MetadataImage, of: str, last: str | int) -> str:
        """Return the token for the page behind the key `last`, and keep the image for it."""
        offset = image.offset
        again = self._kept.pop(offset, None)
        if again is not None:
            again[1].cancel()
        while len(self._kept) >= KEPT_MAX:
            self._drop(next(iter(self._kept)))
        timer = self._clock.call_later(KEPT_S, lambda: self._drop(offset))
        self._kept[offset] = (image, timer)
        return token_text(image, of, last)

    def image_for(self, query: Mapping[str, str], current: MetadataImage) -> MetadataImage | None:
        """Return the image of a request's token; None if it has no token.

        Raises LogbergError CONTINUATION_EXPIRED, INVALID_REQUEST.
        """
        token = _read(query)
        if token is None:
            return None
        if token.offset == current.offset:
            return current
        kept = self._kept.get(token.offset)
        if kept is None:
            raise LogbergError(
                ErrorCode.CONTINUATION_EXPIRED,
                f"the state at offset {token.offset} is no longer kept (only the node that gave "
                f"the token keeps it, for {KEPT_S:.0f} s): begin again without a token",
            )
        return kept[0]

    def last(self, query: Mapping[str, str], of: str, kind: type[Any]) -> Any:
        """Return the last key of the page before; None for the first page. Raises LogbergError."""
        token = _read(query)
        if token is None:
            return None
        if token.of != of or type(token.last) is not kind:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST, f"{CONTINUATION}: the token belongs to another list"
            )
        return token.last

    def stop(self) -> None:
        """Drop all images."""
        for offset in list(self._kept):
            self._drop(offset)

    def _drop(self, offset: int) -> None:
        kept = self._kept.pop(offset, None)
        if kept is not None:
            image, timer = kept
            timer.cancel()
            self._released(image)


def _read(query: Mapping[str, str]) -> _Token | None:
    text = query.get(CONTINUATION)
    if text is None:
        return None
    text = text[:TOKEN_CHARACTERS_MAX]
    try:
        data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        return msgspec.msgpack.decode(data, type=_Token)
    except (ValueError, msgspec.MsgspecError):
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"{CONTINUATION}: not a token; use the one of the page before",
        ) from None
