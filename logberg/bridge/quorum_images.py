"""The state of this cluster as its controllers' log says it, one image after another.

Rule: an image is of committed batches only. The first comes from a snapshot and the log behind it,
and each later one from what was appended.
"""

import asyncio

from audit.places.replicas import NoLogError, Replica
from audit.places.tree_disk import TreeDisk
from audit.questions.state import state_at
from audit.reading.replay import Fold
from ledger.chain import LogMark
from ledger.errors import LedgerError
from logberg.cli.connection_options import ClusterConnection
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.remote_log import RemoteLog, find_sources
from logberg.client.remote_snapshots import RemoteSnapshots
from metadata.image import MetadataImage


class QuorumImages:
    """Reads the log of running controllers."""

    def __init__(self, cluster: ClusterConnection) -> None:
        self._cluster = cluster
        self._fold: Fold | None = None

    def latest(self) -> MetadataImage:
        """Return the newest image. Raises Failure, LedgerError."""
        try:
            with asyncio.Runner() as runner:
                client = LogbergClient(
                    self._cluster.urls, self._cluster.access, self._cluster.deadline_s
                )
                runner.run(client.__aenter__())
                try:
                    return self._latest(runner, client)
                finally:
                    runner.run(client.__aexit__(None, None, None))
        except ClientError as error:
            raise self._cluster.failure(error) from None

    def _latest(self, runner: asyncio.Runner, client: LogbergClient) -> MetadataImage:
        sources = runner.run(find_sources(client, self._cluster.urls, self._cluster.deadline_s))
        log = RemoteLog(sources, runner.run)
        fold = self._fold
        if fold is None or fold.mark.log_end < log.log_start:
            snapshots = RemoteSnapshots(sources, runner.run, lambda _done, _size: None)
            replica = Replica(sources.location, sources.location, TreeDisk(snapshots))
            try:
                state = state_at(replica, log.log_end, reader=log, with_hash=False)
            except NoLogError as error:
                raise LedgerError(str(error)) from None
            image = state.image
            mark = LogMark(image.offset, state.head, image.epoch, image.timestamp_ms)
            fold = self._fold = Fold(image, mark)
        for _ in fold.take_all(log.batches(fold.mark.log_end, log.log_end)):
            pass
        return fold.image
