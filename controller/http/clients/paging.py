"""The size of a page of a list about clients."""

from collections.abc import Mapping

from controller.http.queries import whole_number
from metadata.errors import ErrorCode, LogbergError


def page_limit(query: Mapping[str, str], most: int) -> int:
    """Return how many entries a page looks at: what `limit` asks for. Raises LogbergError."""
    limit = whole_number(query, "limit", most)
    if limit < 1:
        raise LogbergError(ErrorCode.INVALID_REQUEST, "limit: give 1 or more", {"field": "limit"})
    return min(limit, most)
