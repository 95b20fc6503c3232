"""Checks text that may enter the log: it must have no control characters.

Rule: a request with control characters is refused, with the field's name. The log is permanent, and
a program that shows a field later may forget to escape it. They are the C0 and C1 controls
and DEL, line and paragraph separators, and what changes the direction of writing.
"""

import re

from metadata.errors import ErrorCode, LogbergError

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def control_character(text: str) -> str:
    """Return the first control character as `U+001B`; empty: there is none."""
    found = _CONTROL.search(text)
    return "" if found is None else f"U+{ord(found[0]):04X}"


def check_plain(field: str, text: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
    """Raise LogbergError for text with a control character; `field` is how the caller names it."""
    found = control_character(text)
    if found:
        raise LogbergError(
            code,
            f"{field}: it has the control character {found}; use characters that can be shown",
            {"field": field},
        )
