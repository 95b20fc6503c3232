"""What coordination allows, and the checks of what a request brings.

Rule: every limit is checked before a record is made, and the answer names the limit. So no client
can fill the controllers' memory, and no request is too large for the log.
"""

from controller.config import CoordinationLimits
from metadata.errors import ErrorCode, LogbergError
from metadata.image.coordination import BYTES, CoordinationImage
from metadata.plain_text import check_plain


def check_name(field: str, text: str, most_bytes: int) -> None:
    """Check a key, a resource's name or an entry's id. Raises LogbergError INVALID_KEY."""
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    if not 1 <= size <= most_bytes:
        raise LogbergError(
            ErrorCode.INVALID_KEY,
            f"{field}: it has {size} bytes of UTF-8; give 1 to {most_bytes}",
            {"field": field},
        )
    check_plain(field, text, ErrorCode.INVALID_KEY)


def check_size(field: str, data: bytes, most_bytes: int) -> None:
    """Check a value or an entry's data. Raises LogbergError VALUE_TOO_LARGE."""
    if len(data) > most_bytes:
        raise LogbergError(
            ErrorCode.VALUE_TOO_LARGE,
            f"{field}: it has {len(data)} bytes; the most are {most_bytes}",
            {"field": field, "limit": str(most_bytes)},
        )


def check_room(
    state: CoordinationImage, limits: CoordinationLimits, what: str, number: int, size: int
) -> None:
    """Check that `number` more of `what`, and `size` more bytes, fit into the store's totals.

    Whatever doesn't grow the store always fits. Raises LogbergError COORDINATION_FULL.
    """
    limit = getattr(limits, what)
    if number > 0 and state.total(what) + number > limit:
        raise full(what, limit)
    if size > 0 and state.total(BYTES) + size > limits.total_bytes:
        raise full(BYTES, limits.total_bytes)


def full(what: str, limit: int) -> LogbergError:
    """Return the refusal of one more thing than a limit allows."""
    return LogbergError(
        ErrorCode.COORDINATION_FULL,
        f"there is no room for more {what}: the limit is {limit}",
        {"what": what, "limit": str(limit)},
    )
