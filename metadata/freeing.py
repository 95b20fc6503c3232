"""Empties large containers in small steps.

Rule: Python frees the content of a container at once, when the last reference goes. 100,000 keys
take tens of milliseconds, in which an event loop stands still. So the owner of a large container
empties it in steps before it drops it.
"""

from collections.abc import Generator
from typing import Any

STEP = 1_024
"""Entries between two yields."""


def emptied(*containers: list[Any] | dict[Any, Any]) -> Generator[None, None, None]:
    """Empty containers of more than `STEP` entries; yields between steps. Small ones stay."""
    for container in containers:
        while len(container) > STEP:
            if isinstance(container, dict):
                for _ in range(STEP):
                    container.popitem()
            else:
                del container[-STEP:]
            yield
