"""Storage: commits, reading a key, listing keys.

Rule: a commit's checks, fences and keys lie in one space, the first part of their names. It is
decided on what was read, and made under the space's epoch. A receipt with the request id is part of
it.

A removed key stays for ten minutes as a row that says so. So a watch that polls sees the removal,
and its revision.
"""

from collections.abc import AsyncIterator
from typing import Final

from coordination.backend import Commit, Committed, Operation, RecordPage
from coordination.backends.cassandra.queues import CassandraQueues
from coordination.backends.cassandra.sessions import CassandraSessions
from coordination.backends.cassandra.spaces import (
    GONE_S,
    ROOT,
    CassandraSpaces,
    Draft,
    Row,
    end_of_prefix,
    space_of,
)
from coordination.errors import (
    KeyExists,
    KeyMissing,
    NotSupported,
    RevisionMismatch,
    SessionLost,
    TxnTooLarge,
)
from coordination.types import Record, Revision
from coordination.until import Until
from runtime.randomness import Random

MOST_BYTES: Final = 2_000_000
"""Of one transaction. Cassandra warns about batches and refuses mutations of half a commit log's
segment."""
Place = tuple[str, str, bytes]


class CassandraStorage:
    """The keys of one store."""

    def __init__(
        self,
        spaces: CassandraSpaces,
        queues: CassandraQueues,
        sessions: CassandraSessions,
        dice: Random,
    ) -> None:
        self._spaces = spaces
        self._queues = queues
        self._sessions = sessions
        self._dice = dice

    async def commit(self, commit: Commit, until: Until) -> Committed:
        """Raises KeyExists, KeyMissing, RevisionMismatch, Fenced, NotSupported, TxnTooLarge."""
        space = _space(commit)
        receipt = self._receipt(commit)
        keys = [check.key for check in commit.checks]
        keys += [operation.key for operation in commit.operations]
        places = list({_place(key) for key in keys} | {receipt})

        async def decide(draft: Draft) -> Committed:
            if commit.session and await self._sessions.dead_of([commit.session], until):
                raise SessionLost(f"the session {commit.session} is over")
            rows = await self._spaces.rows(space, places, until, serial=True)
            if receipt in rows:
                return _remembered(rows[receipt])
            _check(commit, rows)
            for index, fence in enumerate(commit.fences, len(commit.checks)):
                await self._queues.check_fence(fence, until, index)
            revision = draft.number()
            first = len(commit.checks) + len(commit.fences)
            applied = tuple(
                _apply(draft, operation, rows.get(_place(operation.key)), revision, index)
                for index, operation in enumerate(commit.operations, first)
            )
            bits = "".join("1" if done else "0" for done in applied).encode()
            draft.write(Row(*receipt, bits, modified=revision), GONE_S)
            return Committed(revision, applied)

        return await self._spaces.change(space, decide, until)

    async def get(self, key: str, until: Until, *, stale: bool) -> Record | None:
        place = _place(key)
        rows = await self._spaces.rows(space_of(key), [place], until, serial=not stale)
        return record_of(rows[place]) if place in rows else None

    async def pages(
        self, prefix: str, page: int, until: Until, *, keys_only: bool
    ) -> AsyncIterator[RecordPage]:
        records = []
        revision = Revision(0)
        for space in await self.spaces_of(prefix, until):
            epoch = await self._spaces.epoch(space, until, serial=True)
            revision = Revision(max(revision, epoch))
            rows = await self.rows_of(space, prefix, until, serial=True)
            records += [record for row in rows if (record := record_of(row)) is not None]
        records.sort(key=lambda record: record.key.encode())
        for first in range(0, max(len(records), 1), page):
            yield RecordPage(revision, tuple(records[first : first + page]))

    async def spaces_of(self, prefix: str, until: Until) -> list[str]:
        """The spaces that can have keys which begin with the prefix."""
        if "/" in prefix:
            return [space_of(prefix)]
        return [
            space
            for space in await self._spaces.all_spaces(until)
            if space == ROOT or space.startswith(prefix)
        ]

    async def rows_of(self, space: str, prefix: str, until: Until, *, serial: bool) -> list[Row]:
        """The keys of a prefix, with those that are gone."""
        first = prefix.encode()
        return await self._spaces.keys(space, first, end_of_prefix(first), until, serial=serial)

    def _receipt(self, commit: Commit) -> Place:
        drawn = f"d{self._dice.getrandbits(64):016x}"
        request_id = drawn if commit.request_id is None else f"r{commit.request_id}"
        return ("r", "", request_id.encode())


def record_of(row: Row) -> Record | None:
    """A key's record; None for one that is gone."""
    if row.gone:
        return None
    return Record(
        key=row.id.decode(),
        value=row.value,
        create_revision=Revision(row.created),
        mod_revision=Revision(row.modified),
        version=row.version,
    )


def _place(key: str) -> Place:
    return ("k", "", key.encode())


def _space(commit: Commit) -> str:
    names = [check.key for check in commit.checks]
    names += [fence.resource.name for fence in commit.fences]
    names += [operation.key for operation in commit.operations]
    found = {space_of(name) for name in names}
    if len(found) > 1:
        raise NotSupported(
            "Cassandra changes keys, checks and fences together only below the same first part of"
            f" their names, not {sorted(found)}; a namespace is such a part",
            capability="txn_scope",
        )
    size = sum(len(operation.data) + len(operation.key) for operation in commit.operations)
    if size > MOST_BYTES:
        raise TxnTooLarge(f"the transaction has {size} bytes; the limit is {MOST_BYTES}")
    return found.pop() if found else ROOT


def _remembered(receipt: Row) -> Committed:
    applied = tuple(bit == "1" for bit in receipt.value.decode())
    return Committed(Revision(receipt.modified), applied)


def _check(commit: Commit, rows: dict[Place, Row]) -> None:
    for index, check in enumerate(commit.checks):
        _expect(check.key, rows.get(_place(check.key)), check.mod_revision, index)


def _expect(key: str, row: Row | None, wanted: Revision | None, index: int) -> None:
    current = None if row is None or row.gone else Revision(row.modified)
    if current != wanted:
        raise RevisionMismatch(
            f"{key!r} has revision {current}, not {wanted}", current=current, index=index
        )


def _apply(
    draft: Draft, operation: Operation, row: Row | None, revision: Revision, index: int
) -> bool:
    key = operation.key
    there = None if row is None or row.gone else row
    if operation.kind == "put" and there is not None:
        raise KeyExists(f"{key!r} is there already", record=record_of(there), index=index)
    if operation.kind == "update" and there is None:
        raise KeyMissing(f"{key!r} isn't there", index=index)
    if operation.expect is not None:
        _expect(key, there, operation.expect, index)
    place = _place(key)
    if operation.kind == "delete":
        if there is None:
            return False
        draft.write(Row(*place, modified=revision, gone=True), GONE_S)
        return True
    created, version = (revision, 1) if there is None else (there.created, there.version + 1)
    draft.write(Row(*place, operation.data, created, revision, version))
    return True
