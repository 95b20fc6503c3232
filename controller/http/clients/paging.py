"""The pages of a list about clients.

Rule: a page ends after `SCANNED_MAX` keys at the latest, however many of them match a filter.

A list that people may ask for about themselves is another thing. Its page has as many entries as it
may have, or the list is at its end. So neither a short page nor its token says anything about the
entries of others (ADR 0092). Such a page is found in steps.
"""

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from controller.http.clients.asked import Asked, ReadContext
from controller.http.node_view import View
from controller.http.queries import whole_number
from controller.http.shown_lists import first_that
from metadata.errors import ErrorCode, LogbergError
from metadata.image.sorted_keys import SortedKeys

SCANNED_MAX: Final = 1_000
"""The most keys that one page looks at."""
_K = TypeVar("_K")


def page_of(
    view: View, asked: Asked, context: ReadContext, of: str, order: SortedKeys[_K], kind: Any
) -> tuple[list[_K], str | None]:
    """Return the keys of the page that a request asks for, and the token of the next page.

    `of` names the list in its tokens, and `kind` is the type of its keys. Raises LogbergError.
    """
    limit = page_limit(asked, SCANNED_MAX)
    keys = list(islice(_behind_last(asked, context, of, order, kind), limit))
    return keys, None if len(keys) < limit else _token(view, context, of, keys[-1])


def page_that(
    view: View,
    asked: Asked,
    context: ReadContext,
    of: str,
    order: SortedKeys[str],
    matches: Callable[[str], bool],
) -> Generator[None, None, tuple[list[str], str | None]]:
    """Return the keys that match, and the token of the next page, in steps (see `page_of`).

    Raises LogbergError at once; the steps raise none.
    """
    limit = page_limit(asked, SCANNED_MAX)
    behind = _behind_last(asked, context, of, order, str)

    def steps() -> Generator[None, None, tuple[list[str], str | None]]:
        keys = yield from first_that(behind, limit + 1, matches)
        if len(keys) <= limit:
            return keys, None
        del keys[limit:]
        return keys, _token(view, context, of, keys[-1])

    return steps()


def _behind_last(
    asked: Asked, context: ReadContext, of: str, order: SortedKeys[_K], kind: Any
) -> Iterator[_K]:
    """Return the keys behind the page before, or all of them. Raises LogbergError at once."""
    last = context.pages.last(asked.request.query, of, str)
    return iter(order) if last is None else order.after(key_of(last, kind))


def _token(view: View, context: ReadContext, of: str, last: Any) -> str:
    """Return the token of the page that begins behind a key."""
    return context.pages.token(view.image, of, msgspec.json.encode(last).decode())


def page_limit(asked: Asked, most: int) -> int:
    """Return how many keys a page looks at: what `limit` asks for. Raises LogbergError."""
    limit = whole_number(asked.request.query, "limit", most)
    if limit < 1:
        raise LogbergError(ErrorCode.INVALID_REQUEST, "limit: give 1 or more", {"field": "limit"})
    return min(limit, most)


def key_of(text: str, kind: Any) -> Any:
    """Return the key in a token. Raises LogbergError."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, "continuation: not a token; use the one of the page before"
        ) from None
