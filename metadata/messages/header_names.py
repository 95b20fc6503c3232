"""The two names of a header: `x-logberg-…`, and `x-quorate-…` in release 0.1 (ADR 0025).

Rule: our code uses the new names. A server reads both names. A client sends both names to a server
until the server has shown that it knows the new ones. Release 0.3 drops the old names.
"""

from collections.abc import Mapping
from typing import Final

from metadata.errors import ErrorCode, LogbergError

PREFIX: Final = "x-logberg-"
OLD_PREFIX: Final = "x-quorate-"


def with_new_names(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers, whose names are in lower case, under their new names."""
    if not has_old_names(headers):
        return headers
    old = {
        PREFIX + name.removeprefix(OLD_PREFIX): value
        for name, value in headers.items()
        if name.startswith(OLD_PREFIX)
    }
    others = {name: value for name, value in headers.items() if not name.startswith(OLD_PREFIX)}
    return {**old, **others}


def check_names(headers: Mapping[str, str]) -> None:
    """Raise LogbergError INVALID_REQUEST if a header has different values under its two names."""
    if not has_old_names(headers):
        return
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


def with_both_names(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers with new names, and a copy of each under its old name."""
    if not knows_new_names(headers):
        return headers
    old = {
        OLD_PREFIX + name.removeprefix(PREFIX): value
        for name, value in headers.items()
        if name.startswith(PREFIX)
    }
    return {**headers, **old}


def knows_new_names(headers: Mapping[str, str]) -> bool:
    """Return whether the sender of these headers, whose names are in lower case, uses new names."""
    return _have(PREFIX, headers)


def has_old_names(headers: Mapping[str, str]) -> bool:
    """Return whether a name among these headers, which are in lower case, is an old one."""
    return _have(OLD_PREFIX, headers)


def _have(prefix: str, headers: Mapping[str, str]) -> bool:
    # One search is quicker than one for each name.
    return prefix in "\n".join(headers) and any(name.startswith(prefix) for name in headers)
