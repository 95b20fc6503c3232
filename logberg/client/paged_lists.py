"""Long lists from a controller, page by page, all pages from one state.

Rule: the controller keeps the state for a minute. If it is gone (another controller answers, or
the reader was slow), the reader starts again from the first page. It never mixes two states.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from logberg.client.client_errors import ClientError

PAGE_MAX = 1_000
_EXPIRED = "CONTINUATION_EXPIRED"
_TRIES = 3


class Page(Protocol):
    """An answer that may have a next page."""

    @property
    def continuation(self) -> str | None:
        """The token of the next page; None on the last page."""


T = TypeVar("T")
P = TypeVar("P", bound=Page)


class Get(Protocol):
    """Reads one page. Raises ClientError."""

    async def __call__(
        self, path: str, reply: type[T], query: Mapping[str, str] | None = None
    ) -> T: ...


async def all_pages(
    get: Get,
    path: str,
    reply: type[P],
    joined: Callable[[list[P]], P],
    query: Mapping[str, str] | None = None,
) -> P:
    """Read a list whole: one answer, with the entries of all pages. Raises ClientError."""
    for turn in range(1, _TRIES + 1):
        try:
            return joined(await _read(get, path, reply, query or {}))
        except ClientError as error:
            if error.code != _EXPIRED or turn == _TRIES:
                raise
    raise AssertionError("the last try returns or raises")


def joining(field: str, **cleared: None) -> Callable[[list[P]], P]:
    """Return a function that joins the pages of the list in `field`, and clears other fields."""

    def joined(pages: list[P]) -> P:
        first: Any = pages[0]
        rows = tuple(row for page in pages for row in getattr(page, field))
        whole: P = msgspec.structs.replace(first, **{field: rows}, continuation=None, **cleared)
        return whole

    return joined


def without_pages(reply: msgspec.Struct) -> dict[str, Any]:
    """Return a joined list as JSON shows it: it has no next page."""
    fields: dict[str, Any] = msgspec.to_builtins(reply)
    fields.pop("continuation", None)
    return fields


async def _read(get: Get, path: str, reply: type[P], wanted: Mapping[str, str]) -> list[P]:
    query = {**wanted, "limit": str(PAGE_MAX)}
    pages = [await get(path, reply, query)]
    asked: set[str] = set()
    while token := pages[-1].continuation:
        if token in asked:
            # Without this check, a server could make the client read for ever.
            raise ClientError("UNKNOWN_SERVER_ERROR", f"{path}: the same page came twice")
        asked.add(token)
        pages.append(await get(path, reply, {**query, "continuation": token}))
    return pages
