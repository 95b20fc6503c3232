"""The two names of a header: `x-logberg-…`, and `x-quorate-…` as release 0.1 says it (ADR 0025).

Rule: inside, a header has its new name. Whoever takes a request reads both names. Whoever sends to
a peer that has not shown that it knows the new names says both. Release 0.3 drops the old ones.
"""

from collections.abc import Mapping
from typing import Final

from metadata.errors import ErrorCode, LogbergError

PREFIX: Final = "x-logberg-"
OLD_PREFIX: Final = "x-quorate-"


def with_new_names(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers, their keys in lower case, under their new names."""
    old = {
        PREFIX + name.removeprefix(OLD_PREFIX): value
        for name, value in headers.items()
        if name.startswith(OLD_PREFIX)
    }
    if not old:
        return headers
    others = {name: value for name, value in headers.items() if not name.startswith(OLD_PREFIX)}
    return {**old, **others}


def check_names(headers: Mapping[str, str]) -> None:
    """Raise LogbergError INVALID_REQUEST for a header with two values, one under each name."""
    for name, value in headers.items():
        if not name.startswith(OLD_PREFIX):
            continue
        new = PREFIX + name.removeprefix(OLD_PREFIX)
        if headers.get(new, value) != value:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"the headers {new} and {name} have different values; {name} is the old name of "
                f"{new}: send only {new}",
            )


def with_both_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers that have their new names, under their old ones as well."""
    old = {
        OLD_PREFIX + name.removeprefix(PREFIX): value
        for name, value in headers.items()
        if name.startswith(PREFIX)
    }
    return {**headers, **old}


def knows_new_names(headers: Mapping[str, str]) -> bool:
    """Whether the headers of a request, their keys in lower case, show that its sender does."""
    return any(name.startswith(PREFIX) for name in headers)
