"""Reads keys from the tables of our own backend in Cassandra, and writes nothing there.

Cassandra reads no two partitions at one moment. But each space, a partition, has a number that each
change of it raises. Rule: all numbers are read before and after the rows, serially. If none has
changed, all rows stood together at the moment between; otherwise the reading begins again.

This module needs Cassandra's driver, which is an extra.
"""

from collections.abc import Mapping
from typing import Any, Final

from coordination.backends.cassandra.link import CassandraLink
from coordination.backends.cassandra.schema import checked_keyspace
from coordination.backends.cassandra.spaces import space_of
from coordination.errors import ConfigError, CoordinationError
from coordination.until import ReplyLost, Until
from logberg.importing.found_keys import OF_A_REQUEST, OF_A_SESSION, FoundKey, StoreReading
from logberg.importing.source_error import SourceError
from logberg.importing.store_url import parse_source

_READINGS_MAX: Final = 10


class CassandraSource:
    """The spaces of one keyspace."""

    def __init__(self, url: str, timeout_s: float, ca: str | None = None) -> None:
        """`url`: cassandra://[user:password@]host:port,…/keyspace. Raises SourceError."""
        known = ("replication_factor", "poll_s", "clock_skew_s")
        self._address = parse_source(url, ("cassandra",), known, timeout_s, ca)
        try:
            self._keyspace = checked_keyspace(self._address.url.path)
        except ConfigError as error:
            raise SourceError(str(error)) from None
        self.name = self._address.name

    async def read(self) -> StoreReading:
        """Read all keys. Raises SourceError."""
        link = CassandraLink(self._address.settings(), self._keyspace, None, creates=False)
        try:
            await link.open(self._until())
            spaces = _Spaces(link, self._address.timeout_s)
            for _ in range(_READINGS_MAX):
                before = await spaces.numbers()
                keys = [key for space in before for key in await spaces.keys(space)]
                if await spaces.numbers() == before:
                    newest = max(before.values(), default=0)
                    moment = f"none of {len(before)} spaces changed while they were read"
                    return StoreReading(tuple(keys), newest, newest, moment)
        except (CoordinationError, ReplyLost) as error:
            raise SourceError(f"{self.name}: {error or 'no answer came in time'}") from None
        finally:
            await link.close(self._until())
        raise SourceError(
            f"{self.name}: it changed while it was read, {_READINGS_MAX} times in a row: stop what "
            "writes to it, or try again at a quieter time"
        )

    def _until(self) -> Until:
        return Until.after(self._address.timeout_s)


class _Spaces:
    """The spaces, as one reads them."""

    def __init__(self, link: CassandraLink, timeout_s: float) -> None:
        self._link = link
        self._timeout_s = timeout_s

    async def numbers(self) -> Mapping[str, int]:
        """Return the number of each space. A serial read is of one partition, so each is asked."""
        found = await self._read("all_spaces", (), serial=False)
        numbers = {}
        for space in sorted(row["space"] for row in found):
            (row,) = await self._read("epoch", (space,), serial=True) or ({"epoch": None},)
            if row["epoch"] is not None:
                numbers[space] = int(row["epoch"])
        return numbers

    async def keys(self, space: str) -> list[FoundKey]:
        """Read a whole space."""
        rows = await self._read("whole", (space,), serial=True)
        return [_key(space, row) for row in rows if row["kind"] is not None and not row["gone"]]

    async def _read(self, name: str, values: tuple[str, ...], *, serial: bool) -> list[Any]:
        return await self._link.read(name, values, Until.after(self._timeout_s), serial=serial)


def _key(space: str, row: Mapping[str, Any]) -> FoundKey:
    name = row["id"].decode(errors="backslashreplace")
    if row["kind"] != "k":
        path = f"{space} {row['kind']} {row['resource']} {name}".replace("  ", " ")
        return FoundKey(path, "", left=OF_A_SESSION if row["kind"] == "e" else OF_A_REQUEST)
    try:
        key = row["id"].decode()
    except UnicodeDecodeError as error:
        return FoundKey(name, "", malformed=f"its name is no UTF-8: {error.reason}")
    if space_of(key) != space or not row["modified"]:
        return FoundKey(
            name, "", malformed=f"no writer of this library leaves such a row in the space {space}"
        )
    return FoundKey(name, key, row["value"] or b"")
