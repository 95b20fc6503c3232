"""A partition as a state machine: it is read, then changed by the next number or not at all.

Rule: every change of a space is one batch under the condition that its epoch is still the one from
which the change was decided. So what was read can't have changed meanwhile, whatever it was. The
new epoch is the change's revision.

A lost reply: the receipt in the batch tells. If it isn't there, the batch is sent again under the
same epoch, so at most one of the two is made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from coordination.backends.cassandra.link import Bound, CassandraLink
from coordination.types import Revision
from coordination.until import ReplyLost, Until

T = TypeVar("T")
GONE_S: Final = 600
"""So long a removed key, or a receipt, can still be seen."""
_CONTENDED_S: Final = 0.01
ROOT: Final = "-"
"""The space of what has no slash. The other spaces end with one, and none may be empty."""


def space_of(text: str) -> str:
    """The space of a key or a name: all up to and with the first slash, or the root."""
    return text[: text.find("/") + 1] or ROOT


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a space, but its place."""

    kind: str
    resource: str
    id: bytes
    value: bytes = b""
    created: int = 0
    modified: int = 0
    version: int = 0
    gone: bool = False
    session: str = ""
    token: int = 0
    shared: bool = False

    @classmethod
    def of(cls, found: dict[str, Any]) -> "Row":
        return cls(
            kind=found["kind"],
            resource=found["resource"],
            id=found["id"],
            value=found["value"] or b"",
            created=found["created"] or 0,
            modified=found["modified"] or 0,
            version=found["version"] or 0,
            gone=bool(found["gone"]),
            session=found["session"] or "",
            token=found["term"] or 0,
            shared=bool(found["shared"]),
        )


@dataclass(slots=True)
class Draft:
    """A change of a space in the making."""

    space: str
    epoch: int
    _next: int = 0
    _rows: dict[tuple[str, str, bytes], Bound] = field(default_factory=dict)

    def number(self) -> Revision:
        """The next number of the space; the last one drawn is its epoch afterwards."""
        self._next = max(self._next, self.epoch) + 1
        return Revision(self._next)

    @property
    def reached(self) -> Revision:
        """The space's epoch once the change is made."""
        return Revision(max(self._next, self.epoch))

    def write(self, row: Row, ttl_s: int = 0) -> None:
        values = (
            *(self.space, row.kind, row.resource, row.id, row.value, row.created, row.modified),
            *(row.version, row.gone, row.session, row.token, row.shared, ttl_s),
        )
        self._rows[row.kind, row.resource, row.id] = ("write", values)

    def remove(self, row: Row) -> None:
        place = (row.kind, row.resource, row.id)
        self._rows[place] = ("remove", (self.space, *place))

    @property
    def bounds(self) -> list[Bound]:
        """Nothing, or the statements of the batch."""
        if self._next <= self.epoch:
            assert not self._rows, "a change has a number"
            return []
        return [("advance", (self._next, self.space, self.epoch)), *self._rows.values()]


class CassandraSpaces:
    """All spaces of one store. The writers of one client take turns in a space."""

    def __init__(self, link: CassandraLink, poll_s: float) -> None:
        self._link = link
        self._poll_s = poll_s
        self._polls: dict[str, asyncio.Task[int]] = {}
        self._epochs: dict[str, int] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self.on_change: Callable[[str], None] = lambda _space: None
        """Called with a space that this client has just changed."""

    async def change(self, space: str, decide: Callable[[Draft], Awaitable[T]], until: Until) -> T:
        """Decide on the present state and make the change. `decide` reads, and fills the draft.

        It is called again when somebody else was quicker. What it raises ends the call: nothing was
        changed. What it returns is returned when the change is made, or when it drafted nothing.
        """
        turn = self._turns.setdefault(space, asyncio.Lock())
        async with asyncio.timeout(until.left_s), turn:
            tries = 0
            while True:
                until.check()
                epoch = self._epochs.get(space)
                if epoch is None:
                    epoch = await self.epoch(space, until, serial=True)
                draft = Draft(space, epoch)
                answer = await decide(draft)
                bounds = draft.bounds
                if not bounds or await self._made(space, bounds, until):
                    return answer
                tries += 1
                await asyncio.sleep(min(_CONTENDED_S * tries, until.left_s))

    async def epoch(self, space: str, until: Until, *, serial: bool) -> int:
        """The number of the last change. Begins the space if nobody has yet."""
        rows = await self._link.read("epoch", (space,), until, serial=serial)
        if rows and rows[0]["epoch"] is not None:
            return int(rows[0]["epoch"])
        if not serial:
            return 0
        try:
            await self._link.write([("begin_space", (space,))], until)
            until.lost = False
        except ReplyLost:
            until.lost = False
        return await self.epoch(space, until, serial=True)

    async def polled_epoch(self, space: str, until: Until) -> int:
        """The epoch of a moment ago. All that ask within half an interval share one reading."""
        poll = self._polls.get(space)
        if poll is None:

            async def ask() -> int:
                asyncio.get_running_loop().call_later(
                    self._poll_s / 2, lambda: self._polls.pop(space, None)
                )
                return await self.epoch(space, until, serial=False)

            poll = self._polls[space] = asyncio.ensure_future(ask())
        return await asyncio.shield(poll)

    async def rows(
        self, space: str, places: Sequence[tuple[str, str, bytes]], until: Until, *, serial: bool
    ) -> dict[tuple[str, str, bytes], Row]:
        """Those that are there."""
        if not places:
            return {}
        found = await self._link.read("rows", (space, list(places)), until, serial=serial)
        return {(row.kind, row.resource, row.id): row for row in map(Row.of, found)}

    async def resource(
        self, space: str, resource: str, until: Until, *, serial: bool = True
    ) -> list[Row]:
        found = await self._link.read("resource", (space, resource), until, serial=serial)
        return [Row.of(row) for row in found]

    async def keys(
        self, space: str, first: bytes, end: bytes, until: Until, *, serial: bool
    ) -> list[Row]:
        """The keys from `first` to before `end`, those among them that are gone too."""
        found = await self._link.read("range", (space, first, end), until, serial=serial)
        return [Row.of(row) for row in found]

    async def all_spaces(self, until: Until) -> list[str]:
        found = await self._link.read("all_spaces", (), until, serial=False)
        return sorted(row["space"] for row in found if row["epoch"] is not None)

    async def _made(self, space: str, bounds: list[Bound], until: Until) -> bool:
        try:
            found = await self._link.write(bounds, until)
        except ReplyLost:
            self._epochs.pop(space, None)
            return False
        if found is not None:
            self._epochs[space] = int(found["epoch"])
            return False
        until.lost = False
        values: Iterable[Any] = bounds[0][1]
        self._epochs[space] = int(next(iter(values)))
        self._polls.pop(space, None)
        self.on_change(space)
        return True


def end_of_prefix(prefix: bytes) -> bytes:
    """The smallest bytes above all that begin with a prefix."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else b"\xff" * 5
