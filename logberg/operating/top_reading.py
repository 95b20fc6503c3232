"""Reads what `logberg top` shows: the cluster, and the changes since the last reading.

Rule: reading never fails. What does not answer is shown as such, and read again the next time.
"""

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.cluster_view import ClusterView, observe
from logberg.operating.top_frame import TopView
from metadata.messages.log import BatchInWords, LogReply
from metadata.messages.quorum import QuorumReply

KEPT = 200
_BEHIND = 200
"""So many records before the end, the first reading begins."""
_PIECES = 8
"""The most requests for changes in one reading. What is older then is left out."""


class TopReading:
    """Reads one cluster again and again."""

    def __init__(self, client: LogbergClient, urls: Sequence[str]) -> None:
        self._client = client
        self._urls = urls
        self._changes: deque[BatchInWords] = deque(maxlen=KEPT)
        self._next = -1
        self._last: tuple[float, int] | None = None

    async def read(self) -> TopView:
        """Return the cluster as it is now."""
        view = await observe(self._client, self._urls)
        source = next((seen for seen in view.controllers if seen.active), None)
        if source is None:
            source = next((seen for seen in view.controllers if seen.status is not None), None)
        quorum: QuorumReply | None = None
        if source is not None:
            with suppress(ClientError):
                quorum = await self._client.from_one(source.url, "/v1/quorum", QuorumReply)
            with suppress(ClientError):
                await self._read_changes(source.url, source.log_end)
        return TopView(view, quorum, list(self._changes), self._pace(view))

    async def _read_changes(self, url: str, end: int) -> None:
        if self._next < 0 or end - self._next > 50 * _BEHIND:
            self._next = max(0, end - _BEHIND)
        for _ in range(_PIECES):
            if self._next >= end:
                return
            query = {"offset": str(self._next), "format": "json"}
            reply = await self._client.from_one(url, "/v1/log", LogReply, query)
            if reply.next_offset <= self._next:
                return
            self._changes.extend(batch for batch in reply.batches if batch.offset >= self._next)
            self._next = reply.next_offset

    def _pace(self, view: ClusterView) -> float | None:
        """Records a second since the reading before."""
        end = max((seen.log_end for seen in view.controllers), default=-1)
        if end < 0:
            return None
        now, before = time.monotonic(), self._last
        self._last = (now, end)
        if before is None or now <= before[0]:
            return None
        return max(0, end - before[1]) / (now - before[0])
