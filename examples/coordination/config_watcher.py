"""Settings that change while the program runs: a dictionary that follows the keys below `config`.

    python examples/coordination/config_watcher.py quorum+http://127.0.0.1:9093

The watch begins with the present keys, and after a lost connection it goes on where it was. If the
store has forgotten changes meanwhile, events of kind `resync` bring the fresh state, also of keys
that were deleted.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Mapping

from logberg import connect


def show(settings: Mapping[str, str]) -> None:
    """Print the settings."""
    print(dict(sorted(settings.items())), flush=True)


async def follow(url: str, on_change: Callable[[Mapping[str, str]], None] = show) -> None:
    """Report the settings, and again after each change."""
    settings: dict[str, str] = {}
    async with connect(url) as coordinator, coordinator.storage.watch_prefix("config") as events:
        async for event in events:
            name = event.key.removeprefix("config/")
            if event.record is None:
                settings.pop(name, None)
            else:
                settings[name] = event.record.value.decode()
            on_change(settings)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(follow(sys.argv[1]))
