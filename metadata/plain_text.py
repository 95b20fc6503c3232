"""Checks that text for the log has no control characters, and is not too long.

Rule: the controller refuses a request with control characters and names the field. The log is
permanent, and a program that shows a field later may forget to escape it. Control characters are
C0, C1 and DEL, the line and paragraph separators, and those that change the direction of writing.
"""

import re

from metadata.errors import ErrorCode, LogbergError

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def control_character(text: str) -> str:
    """Return the first control character, such as `U+001B`; empty: there is none."""
    found = _CONTROL.search(text)
    return "" if found is None else f"U+{ord(found[0]):04X}"


def without_control_characters(text: str) -> str:
    """Return text with a question mark in place of each character that could not be shown."""
    return _CONTROL.sub("?", text).encode(errors="replace").decode()


def check_plain(field: str, text: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
    """Raise LogbergError if `text` has a control character; `field` names it for people."""
    found = control_character(text)
    if found:
        raise LogbergError(
            code,
            f"{field}: it has the control character {found}; use printable characters only",
            {"field": field},
        )


def check_length(field: str, text: str, most: int) -> None:
    """Raise LogbergError if `text` has more than `most` characters."""
    if len(text) > most:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"{field}: it has more than {most} characters",
            {"field": field},
        )
