"""Frees a large request bit by bit.

When the last reference to a request goes, Python frees it in one piece, which takes long for a
hundred thousand structs. So their lists are emptied before, a few elements at a time.

Rule: nobody may read the request any more.
"""

from collections.abc import Generator
from typing import Any, Final

from runtime.clock import Clock
from runtime.loop.slices import run_in_slices

_LARGE: Final = 2_000
"""Requests with fewer elements are left to Python."""
_AT_ONCE: Final = 200


def let_go(clock: Clock, fields: dict[str, Any], elements: int) -> None:
    """Free a request's fields, in slices if it has many elements."""
    if elements > _LARGE:
        run_in_slices(clock, _emptied(fields), lambda: None)


def _emptied(fields: dict[str, Any]) -> Generator[None, None, None]:
    for value in fields.values():
        if isinstance(value, list):
            while value:
                for element in value[-_AT_ONCE:]:
                    if isinstance(element, dict):
                        yield from _emptied(element)
                del value[-_AT_ONCE:]
                yield
