"""The log of running controllers, for the console: an `audit.console.log_source.LogSource`.

Rule: one conversation at a time. The thread that keeps the index up and those that show a record
take turns, because the client belongs to one event loop.
"""

import asyncio
from collections.abc import Coroutine
from threading import Lock
from typing import Any, TypeVar

from audit.places.replicas import Replica
from audit.places.tree_disk import TreeDisk
from audit.reading.readable_log import ReadableLog
from ledger.batch import Batch
from ledger.errors import LedgerError
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.remote_log import RemoteLog, find_sources
from logberg.client.remote_snapshots import RemoteSnapshots
from metadata.messages import SubjectKeysReply

T = TypeVar("T")


class FollowedLog:
    """A log that controllers send, as far as it reaches at each call of `newest`."""

    def __init__(self, client: LogbergClient, urls: tuple[str, ...], deadline_s: float) -> None:
        """`deadline_s`: of one request. Raises LedgerError."""
        self._runner = asyncio.Runner()
        self._lock = Lock()
        self._client = client
        self._run(client.__aenter__())
        try:
            self._sources = self._run(find_sources(client, urls, deadline_s))
        except LedgerError:
            self.close()
            raise
        snapshots = RemoteSnapshots(self._sources, self._run, lambda _done, _size: None)
        where = self._sources.location
        self.replica = Replica(where, where, TreeDisk(snapshots), live=True)

    def newest(self) -> ReadableLog:
        """Return the log as far as it reaches now. Raises LedgerError."""
        return RemoteLog(self._sources, self._run)

    def batch_at(self, offset: int) -> Batch:
        """Return the batch that holds an offset. Raises LedgerError."""
        return RemoteLog(self._sources, self._run).batch_at(offset)

    def subject_keys(self) -> SubjectKeysReply:
        """Return the tree of subjects' keys, sealed. Raises LedgerError."""
        return self._run(self._client.get("/v1/subject-keys", SubjectKeysReply))

    def close(self) -> None:
        """End the connections."""
        self._run(self._client.__aexit__(None, None, None))
        self._runner.close()

    def _run(self, conversation: Coroutine[Any, Any, T]) -> T:
        """Run a conversation to its end. Raises LedgerError."""
        with self._lock:
            try:
                return self._runner.run(conversation)
            except ClientError as error:
                raise LedgerError(str(error)) from None
