"""The source of a backup in a running controller, over HTTP.

Rule: all of a backup comes from one controller, so that its checkpoint and its segments are of one
node. If what a controller sends is damaged, the caller takes the next one. One that doesn't lead is
asked first, and the leader only if it is alone.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from audit.places.tree_disk import TreeDisk
from logberg.backups.backup_format import BackupError, SavedVoter
from logberg.backups.making import SourceDamagedError
from logberg.backups.sources import BackupSource
from logberg.client.access import Access
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.remote_log import Run, find_sources
from logberg.client.remote_segments import RemoteSegments
from logberg.client.remote_snapshots import RemoteSnapshots
from metadata.uuids import parse_uuid
from snapshots.checkpoint import FOLDER, CheckpointId
from snapshots.store import list_checkpoints

T = TypeVar("T")


class ControllersSource:
    """One controller."""

    def __init__(self, segments: RemoteSegments, run: Run[object]) -> None:
        """Raises BackupError, ClientError."""
        self._segments = segments
        snapshots = RemoteSnapshots(segments.sources, run, lambda _done, _total: None)
        self._disk = TreeDisk(snapshots)
        self.location = segments.location
        self.cluster_id = segments.cluster_id
        self.end = segments.end
        if not segments.segments:
            raise BackupError(f"{self.location} holds no batch yet: there is nothing to back up")
        self.segments = segments.segments
        self.checkpoints = [
            (one, self._disk.size(f"{FOLDER}/{one.name}"))
            for one in list_checkpoints(self._disk)
            if one.offset <= self.end.log_end
        ]
        self.voters = tuple(
            SavedVoter(each.node_id, parse_uuid(each.directory_id), each.host, each.port)
            for each in segments.quorum().members
            if each.is_voter
        )

    def read_segment(self, base_offset: int, position: int, length: int) -> bytes:
        data = self._segments.read(base_offset, position, length)
        if not data:
            raise SourceDamagedError(
                f"{self.location} sent less of the segment at offset {base_offset} than it listed"
            )
        return data

    def read_checkpoint(self, checkpoint: CheckpointId, position: int, length: int) -> bytes:
        return self._disk.read(f"{FOLDER}/{checkpoint.name}", position, length)


def with_remote_source(
    urls: Sequence[str],
    access: Access,
    deadline_s: float,
    use: Callable[[BackupSource], T],
    on_next: Callable[[str], None],
) -> T:
    """Let `use` read one controller after the other, until one's bytes are sound.

    `on_next` gets the reason for which another one is asked. Raises the first one's error: a
    ClientError or SourceDamagedError; TlsFilesError; and whatever else `use` raises.
    """
    client = LogbergClient(urls, access, deadline_s)
    with asyncio.Runner() as runner:
        runner.run(client.__aenter__())
        try:
            sources = runner.run(find_sources(client, urls, deadline_s))
            first: Exception | None = None
            for url in sources.urls:
                try:
                    segments = RemoteSegments(client, url, runner.run, deadline_s)
                    return use(ControllersSource(segments, runner.run))
                except (ClientError, SourceDamagedError) as error:
                    on_next(str(error))
                    first = first or error
            assert first is not None
            raise first
        finally:
            runner.run(client.__aexit__(None, None, None))
