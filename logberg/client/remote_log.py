"""Reads the log of running controllers over HTTP, as `ledger.reader` reads the one in a folder.

Rule: bytes are checked as those of files are: the checksum of each batch, and that it continues the
batch before it. The log is the same on all controllers, so any of them may send the next piece. One
that has all of the log and does not lead is asked first.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from ledger.batch import Batch, parse
from ledger.chain import LogMark
from ledger.errors import LedgerError
from logberg.client.asking import Asking
from logberg.client.client_errors import ClientError
from metadata.messages.log import LogReply, ReadLogReply
from metadata.messages.quorum import StatusReply

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]
"""Runs one conversation to its end, such as `asyncio.Runner.run`."""

_PIECE_BYTES: Final = 1024 * 1024
_TURNS: Final = 3
"""So often every controller is asked for a piece."""
_PAUSE_S: Final = 0.5


class Sources:
    """The controllers that have a log, the best one to ask first."""

    def __init__(
        self, client: Asking, cluster_id: str, urls: Sequence[str], deadline_s: float
    ) -> None:
        """`deadline_s`: of one request."""
        self.cluster_id = cluster_id
        self._client = client
        self._urls = list(urls)
        self._deadline_s = deadline_s

    @property
    def location(self) -> str:
        """The controller that answered last, for messages."""
        return self._urls[0]

    @property
    def urls(self) -> tuple[str, ...]:
        """All of them, in the order in which they are asked next."""
        return tuple(self._urls)

    async def ask(
        self,
        path: str,
        reply: type[T],
        query: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
    ) -> T:
        """Ask one controller after the other until one answers. Raises ClientError of the first."""
        why: ClientError | None = None
        for turn in range(_TURNS):
            for url in list(self._urls):
                try:
                    found = await self._client.from_one(
                        url, path, reply, query, self._deadline_s, headers
                    )
                except ClientError as error:
                    why = why or error
                    continue
                self._urls.remove(url)
                self._urls.insert(0, url)
                return found
            assert why is not None
            if not why.reply.retriable:
                break
            await asyncio.sleep(_PAUSE_S * (turn + 1))
        assert why is not None
        raise why


async def find_sources(client: Asking, urls: Sequence[str], deadline_s: float) -> Sources:
    """Ask the controllers at `urls` how much of the log they have. Raises ClientError."""

    async def status(url: str) -> StatusReply | ClientError:
        try:
            return await client.from_one(url, "/v1/status", StatusReply, deadline_s=deadline_s)
        except ClientError as error:
            return error

    answers = await asyncio.gather(*map(status, urls))
    found = [
        (said, url)
        for said, url in zip(answers, urls, strict=True)
        if not isinstance(said, ClientError)
    ]
    if not found:
        raise next(said for said in answers if isinstance(said, ClientError))
    cluster_id = found[0][0].cluster_id
    of_cluster = [one for one in found if one[0].cluster_id == cluster_id]
    # The one with the most history, then with the newest end, and rather not the busy leader.
    of_cluster.sort(key=lambda one: (one[0].log_start, -one[0].log_end, one[0].active))
    return Sources(client, cluster_id, [url for _, url in of_cluster], deadline_s)


class RemoteLog:
    """The committed log, as far as it could be read when this was made."""

    def __init__(self, sources: Sources, run: Run[Any]) -> None:
        """Find where the log begins and ends. Raises ClientError."""
        self._sources = sources
        self._run = run
        self._known: LogMark | None = None
        self.cluster_id = sources.cluster_id
        self.notes: list[str] = []
        status = run(sources.ask("/v1/status", StatusReply, {}))
        head = self._read(status.log_start, 0)
        self.log_start, self.log_end = head.log_start, head.high_watermark

    @property
    def start_timestamp_ms(self) -> int:
        """A time before which nothing can be read: 0, or that of the first batch here."""
        if self.log_start in (0, self.log_end):
            return 0
        return self.batch_at(self.log_start).header.timestamp_ms

    def batches(self, start: int | None = None, end: int | None = None) -> Iterator[Batch]:
        """Yield whole batches, checked and chained, from the one that holds `start`.

        The last one begins before `end`. Raises ClientError, LedgerError.
        """
        offset = self.log_start if start is None else start
        until = self.log_end if end is None else end
        mark = self._mark_at(offset)
        while offset < until:
            reply = self._read(offset, 0 if until - offset == 1 else _PIECE_BYTES)
            if not reply.batches:
                raise LedgerError(f"{self._sources.location} sent no batch at offset {offset}")
            for encoded in reply.batches:
                batch = self._parsed(encoded, offset)
                if batch.header.base_offset >= until:
                    return
                if mark is not None and (objection := mark.objection(batch)):
                    raise LedgerError(
                        f"the log from {self._sources.location} is not one history: {objection}"
                    )
                if batch.header.end_offset <= offset:
                    raise LedgerError(
                        f"{self._sources.location} sent the batch at offset "
                        f"{batch.header.base_offset}, and {offset} was asked for"
                    )
                mark = _mark_after(batch)
                offset = mark.log_end
                yield batch

    def batch_at(self, offset: int) -> Batch:
        """Return the batch that holds an offset before `log_end`."""
        return next(self.batches(offset, offset + 1))

    def end_of_batch(self, offset: int) -> int:
        """Return the end of the batch around `offset`; between two batches `offset` itself."""
        if offset <= self.log_start or offset >= self.log_end:
            return offset
        return self.batch_at(offset - 1).header.end_offset

    def hash_at(self, offset: int) -> bytes | None:
        """Return the chain hash of the records before `offset`; None if no batch ends there."""
        if offset == 0:
            return LogMark.beginning(self.cluster_id).head
        if not self.log_start < offset <= self.log_end:
            return None
        batch = self.batch_at(offset - 1)
        if batch.header.end_offset != offset:
            return None
        self._known = _mark_after(batch)
        return batch.hash

    def last_timestamp_ms(self) -> int:
        """Return the timestamp of the last batch; 0 in an empty log."""
        if self.log_end == self.log_start:
            return 0
        return self.batch_at(self.log_end - 1).header.timestamp_ms

    def offset_at_time(self, timestamp_ms: int) -> int:
        """Return the end offset of the log as it was at a time (inclusive).

        A binary search: it reads some 30 batches of a log of a billion records.
        """
        low, high = self.log_start, self.log_end
        while low < high:
            header = self.batch_at((low + high) // 2).header
            if header.timestamp_ms <= timestamp_ms:
                low = header.end_offset
            else:
                high = max(header.base_offset, self.log_start)
        return low

    async def words(self, offset: int, up_to: int) -> LogReply:
        """Return batches from `offset` on that end by `up_to`, in words for people."""
        query = {"offset": str(offset), "format": "json"}
        reply = await self._sources.ask("/v1/log", LogReply, query)
        batches = tuple(batch for batch in reply.batches if batch.end_offset <= up_to)
        return LogReply(
            reply.offset, min(reply.next_offset, up_to), reply.log_start, up_to, batches
        )

    def _read(self, offset: int, max_bytes: int) -> ReadLogReply:
        query = {"offset": str(offset), "maxBytes": str(max_bytes)}
        reply: ReadLogReply = self._run(self._sources.ask("/v1/log", ReadLogReply, query))
        return reply

    def _mark_at(self, offset: int) -> LogMark | None:
        """Return the mark that the batch at an offset must continue, if it is known."""
        if offset == 0:
            return LogMark.beginning(self.cluster_id)
        known = self._known
        return known if known is not None and known.log_end == offset else None

    def _parsed(self, encoded: bytes, offset: int) -> Batch:
        try:
            return parse(encoded)
        except LedgerError as error:
            raise LedgerError(
                f"{self._sources.location} sent a damaged batch after offset {offset}: {error}"
            ) from None


def _mark_after(batch: Batch) -> LogMark:
    header = batch.header
    return LogMark(header.end_offset, batch.hash, header.epoch, header.timestamp_ms)
