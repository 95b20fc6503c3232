"""Collects the events of a watch beside a case, so that the case can wait for what it expects."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

FIRST_EVENT_S = 10.0
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)


class Watching(AbstractAsyncContextManager[object], Protocol[E_co]):
    """What `seen` needs of a watch."""

    def __aiter__(self) -> AsyncIterator[E_co]: ...


@asynccontextmanager
async def seen(watch: Watching[E]) -> AsyncIterator[list[E]]:
    """Open a watch, wait for its first event, and return a list that grows with each event.

    An error of the watch is raised at the end of the block. Raises TimeoutError without an event.
    """
    events: list[E] = []
    first = asyncio.Event()

    async def collect() -> None:
        try:
            async for event in watch:
                events.append(event)
                first.set()
        finally:
            first.set()

    async with watch:
        task = asyncio.create_task(collect())
        try:
            async with asyncio.timeout(FIRST_EVENT_S):
                await first.wait()
            yield events
            if task.done() and not task.cancelled():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def seen_later(watch: Watching[E]) -> AsyncIterator[list[E]]:
    """As `seen`, but doesn't wait for a first event: for a watch that begins with `after`."""
    events: list[E] = []

    async def collect() -> None:
        async for event in watch:
            events.append(event)  # noqa: PERF401 - the case reads the list while it grows

    async with watch:
        task = asyncio.create_task(collect())
        try:
            yield events
            if task.done() and not task.cancelled():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
