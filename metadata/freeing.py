"""Large containers are emptied bit by bit.

Rule: Python frees what a container holds when its last owner lets go, in one go: 100,000 keys take
tens of milliseconds, in which an event loop stands still. Who has made a large container and needs
it no more empties it in steps instead.
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
