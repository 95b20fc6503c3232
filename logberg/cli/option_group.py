"""Several options as one decorator, for commands that share them."""

from collections.abc import Callable
from typing import Any

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def option_group(*options: Decorator) -> Decorator:
    """Return a decorator that adds the options; help shows them in this order."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated
