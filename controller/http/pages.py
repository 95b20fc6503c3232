"""Pages of a long answer, all from one image.

Rule: as in etcd, a page says where the next one begins, and all pages of one reading are of one
offset. The token holds that offset and the last key; the image is kept for it, a while and for so
many readers. When it is gone, the reader is told so and begins anew: it is never shown a mixture.
Images share what has not changed, so keeping one costs what has changed since.
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
"""For how long after its last page an image is kept."""
KEPT_MAX: Final = 64
"""Images; beyond it the one whose last page is oldest goes."""
TOKEN_CHARACTERS_MAX: Final = 1024


class _Token(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What stands in a token."""

    of: str
    """Which list it goes on with."""
    offset: int
    last: str | int
    """The last key that was given."""


class Pages:
    """Keeps images for those who read page by page."""

    def __init__(self, clock: Clock, released: Callable[[MetadataImage], None]) -> None:
        """`released` is told of each image that is kept no more."""
        self._clock = clock
        self._released = released
        self._kept: dict[int, tuple[MetadataImage, Timer]] = {}

    def token(self, image: MetadataImage, of: str, last: str | int) -> str:
        """Return the token for the page behind `last`, and keep the image for it."""
        offset = image.offset
        again = self._kept.pop(offset, None)
        if again is not None:
            again[1].cancel()
        while len(self._kept) >= KEPT_MAX:
            self._drop(next(iter(self._kept)))
        timer = self._clock.call_later(KEPT_S, lambda: self._drop(offset))
        self._kept[offset] = (image, timer)
        token = msgspec.msgpack.encode(_Token(of, offset, last))
        return urlsafe_b64encode(token).decode().rstrip("=")

    def image_for(self, query: Mapping[str, str], current: MetadataImage) -> MetadataImage | None:
        """Return the image that a request goes on with; None: it names no token.

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
                f"the state at offset {token.offset} is not kept here any more (for "
                f"{KEPT_S:.0f} s, on the node that gave the token): begin again without a token",
            )
        return kept[0]

    def last(self, query: Mapping[str, str], of: str, kind: type[Any]) -> Any:
        """Return the last key of the page before, None at the first. Raises LogbergError."""
        token = _read(query)
        if token is None:
            return None
        if token.of != of or type(token.last) is not kind:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST, f"{CONTINUATION}: the token is another list's"
            )
        return token.last

    def stop(self) -> None:
        """Keep none any more."""
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
            ErrorCode.INVALID_REQUEST, f"{CONTINUATION}: that is no token of ours"
        ) from None
