"""Empties large containers in small steps.

Rule: when the last reference to a container goes, Python frees its whole content at once. For
100,000 keys that takes tens of milliseconds, in which the event loop can't run. So the owner of a
large container empties it in steps before it drops it.
"""

from collections.abc import Generator
from typing import Any

STEP = 1_024
"""Entries between two yields."""


def emptied(*containers: list[Any] | dict[Any, Any]) -> Generator[None, None, None]:
    """Empty each container of more than `STEP` entries down to that, and yield between steps."""
    for container in containers:
        while len(container) > STEP:
            if isinstance(container, dict):
                for _ in range(STEP):
                    container.popitem()
            else:
                del container[-STEP:]
            yield
