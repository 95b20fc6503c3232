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
    if not _may_have(OLD_PREFIX, headers):
        return headers
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
    """Raise LogbergError INVALID_REQUEST if a header has different values under its two names."""
    if not _may_have(OLD_PREFIX, headers):
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


def with_both_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with new names, and a copy of each under its old name."""
    old = {
        OLD_PREFIX + name.removeprefix(PREFIX): value
        for name, value in headers.items()
        if name.startswith(PREFIX)
    }
    return {**headers, **old}


def knows_new_names(headers: Mapping[str, str]) -> bool:
    """Return whether the sender of these headers, whose names are in lower case, uses new names."""
    return _may_have(PREFIX, headers) and any(name.startswith(PREFIX) for name in headers)


def _may_have(prefix: str, headers: Mapping[str, str]) -> bool:
    """Return False if no name has the prefix. One search is quicker than one for each name."""
    return prefix in "\n".join(headers)
