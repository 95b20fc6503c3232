"""Asks for an error: a case says which call must fail, and how."""

from collections.abc import Awaitable
from typing import TypeVar

F = TypeVar("F", bound=BaseException)


async def refusal(kind: type[F] | tuple[type[F], ...], call: Awaitable[object]) -> F:
    """Return the error of this kind that `call` raises. Raises AssertionError when it succeeds."""
    try:
        result = await call
    except kind as error:
        return error
    names = kind.__name__ if isinstance(kind, type) else [one.__name__ for one in kind]
    raise AssertionError(f"the call returned {result!r} and should raise {names}")
