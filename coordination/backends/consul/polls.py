"""Waits for changes on Consul: one blocking query for each place that is watched.

Rule: all watches of one place share one query. It keeps only the last state, so a slow reader costs
nothing; the reader finds out itself what is different. Consul holds a query until its index grows,
or for `_WAIT_S`.

Consul's index is also greater after changes that it has forgotten, of other keys too, and Consul
answers the query of a key that isn't there after every change of a key near it. So a query that
brought no news waits for its turn to be repeated, and the turns of all places follow each other at
a steady pace. An index that goes back means that Consul's state was restored; the query then begins
anew.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from coordination.backends.consul.gateway import ConsulGateway, FoundKeys
from coordination.errors import AuthFailed, CoordinationError
from coordination.http_servers import NotDoneError, PerhapsDoneError

_WAIT_S: Final = 5.0
_SLACK_S: Final = 2.0
"""Consul adds up to a sixteenth to the time that it waits."""
_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_PACE_S: Final = 0.01
"""From one turn to the next. Without turns a thousand watches keep a client busy while anybody
writes."""


@dataclass(eq=False, slots=True)
class WatchedPlace:
    """A key, or all that begin with it, and its last state."""

    key: str
    recurse: bool
    found: FoundKeys
    readers: int = 0
    turn: int = 0
    """Grows with each answer, also with one that has nothing new."""
    gaps: int = 0
    """How often nobody watched for a while, because a server didn't answer."""
    error: CoordinationError | None = None
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def tell(self) -> None:
        """Wake all readers."""
        self.turn += 1
        self.answered.set()
        self.answered = asyncio.Event()


class ConsulPolls:
    """The queries that wait."""

    def __init__(self, gateway: ConsulGateway) -> None:
        self._gateway = gateway
        self._places: dict[tuple[str, bool], WatchedPlace] = {}
        self._turn = asyncio.Lock()

    def begin(self, key: str, found: FoundKeys, *, recurse: bool) -> WatchedPlace:
        """Watch a place, from this state on; `end` it once for each call."""
        place = self._places.get((key, recurse))
        if place is None:
            place = self._places[key, recurse] = WatchedPlace(key, recurse, found)
            place.task = asyncio.create_task(self._run(place), name=f"consul watch of {key}")
        place.readers += 1
        return place

    def end(self, place: WatchedPlace) -> None:
        """Stop watching; the last reader ends the query."""
        place.readers -= 1
        if place.readers == 0:
            self._places.pop((place.key, place.recurse), None)
            if place.task is not None:
                place.task.cancel()

    async def read(self, key: str, *, recurse: bool) -> FoundKeys:
        """Read a place as it is now."""
        return await self._gateway.read(key, recurse=recurse)

    async def aclose(self) -> None:
        """End all queries."""
        tasks = [place.task for place in self._places.values() if place.task is not None]
        self._places.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, place: WatchedPlace) -> None:
        index, pause = place.found.revision, _PAUSE_S
        servers = self._gateway.servers
        while True:
            url = servers.url
            try:
                found = await self._gateway.poll(
                    url,
                    place.key,
                    _WAIT_S + _SLACK_S,
                    recurse=place.recurse,
                    after=index,
                    wait_s=_WAIT_S,
                )
            except AuthFailed as error:
                place.error = error
                place.tell()
                return
            except (NotDoneError, PerhapsDoneError, CoordinationError):
                place.gaps += 1
                servers.avoid(url)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                continue
            pause = _PAUSE_S
            if found.revision < index or found.revision == 0:
                index = 0
                await asyncio.sleep(pause)
                continue
            index = found.revision
            is_news = found.keys != place.found.keys
            place.found = found
            place.tell()
            if not is_news:
                async with self._turn:
                    await asyncio.sleep(_PACE_S)
