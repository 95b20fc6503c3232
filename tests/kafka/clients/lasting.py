"""What a client printed, without what changes from run to run."""

import re
from typing import Final

from tests.kafka.tools.running import lasting as lasting_of_tools

_CHANGING: Final = (
    (re.compile(r"[A-Za-z0-9+/…]{60,}={0,2}"), "…hmac…"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d\b"), "…date…"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "…uuid…"),
    (re.compile(r"((?:port|Port)['\"]?[:=] ?)\d{4,5}\b"), r"\1…"),
    (re.compile(r"(LogEndOffset:? +)-?\d+"), r"\1…"),
)
"""What differs from run to run beside what Kafka's tools print."""


def lasting(text: str) -> str:
    """Return the lines without stack traces, and without what changes from run to run."""
    for pattern, stand_in in _CHANGING:
        text = pattern.sub(stand_in, text)
    found = lasting_of_tools(text)
    for pattern, stand_in in _CHANGING:
        found = pattern.sub(stand_in, found)
    return found
