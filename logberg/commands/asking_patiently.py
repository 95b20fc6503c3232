"""Asks the controllers again while their answer is "not yet"."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from logberg.cli.output import note
from logberg.client.client_errors import ClientError
from metadata.errors import ErrorCode

T = TypeVar("T")

POLL_S: Final = 0.25


async def patiently(ask: Callable[[], Awaitable[T]], wait_s: float) -> T:
    """Ask until it is time for the change. Raises ClientError, after `wait_s` also "not yet"."""
    until, told = time.monotonic() + wait_s, False
    while True:
        try:
            return await ask()
        except ClientError as error:
            if error.code != ErrorCode.VOTERS_NOT_READY or time.monotonic() >= until:
                raise
            if not told:
                note(f"waiting: {error}")
                told = True
        await asyncio.sleep(POLL_S)
