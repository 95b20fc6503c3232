"""Where a backup comes from: a node's folder, whether or not its node runs.

Rule: a source's beginning and end are fixed when it is opened. Everything before the end was
committed, so it never changes, and a node that goes on writing disturbs nothing.
`logberg.backups.remote_source` is the other kind.
"""

from collections.abc import Sequence
from typing import Protocol

from audit.places.replicas import Replica
from ledger.batch import parse
from ledger.catalogue import Catalogue, Segment, find_segments, read_header
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError, LedgerError
from ledger.reader import cluster_id_of
from ledger.scan import Head, walk_heads
from logberg.backups.backup_format import BackupError, SavedVoter
from quorum.journal.damage import DamagedError
from quorum.journal.manifest import FILE as MANIFEST
from quorum.journal.manifest import decode_manifest
from runtime.disk.interface import Disk
from snapshots.checkpoint import FOLDER, CheckpointId
from snapshots.store import list_checkpoints


class BackupSource(Protocol):
    """A ledger and its checkpoints, up to a mark."""

    @property
    def location(self) -> str:
        """The folder or the controller, for messages and for the header."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""

    @property
    def end(self) -> LogMark:
        """The mark up to which the ledger is taken."""

    @property
    def segments(self) -> Sequence[tuple[int, int]]:
        """(base offset, bytes up to `end`), ascending and without a gap between them."""

    @property
    def checkpoints(self) -> Sequence[tuple[CheckpointId, int]]:
        """(checkpoint, bytes), ascending."""

    @property
    def voters(self) -> tuple[SavedVoter, ...]:
        """The voters, if the source knows them."""

    def read_segment(self, base_offset: int, position: int, length: int) -> bytes:
        """Return up to `length` bytes of a segment, and at least one."""

    def read_checkpoint(self, checkpoint: CheckpointId, position: int, length: int) -> bytes:
        """Return up to `length` bytes of a checkpoint, and at least one."""


class FolderSource:
    """The source in a node's folder."""

    def __init__(self, disk: Disk, location: str, synced_to: LogMark | None = None) -> None:
        """`synced_to`: the manifest's mark. Raises BackupError, LedgerError, OSError."""
        self.location = location
        self._disk = disk
        self.cluster_id = cluster_id_of(disk)
        segments: list[Segment] = []
        for base, path in find_segments(disk):
            try:
                segments.append(Segment(path, *read_header(disk, path, base, self.cluster_id)))
            except DamagedBatchError as error:
                if not segments or (synced_to is not None and base < synced_to.log_end):
                    raise LedgerError(f"{location}: {path}: {error}") from None
                break  # A node is just beginning this one.
        self.end, size = self._end(segments, synced_to)
        run = Catalogue(disk, self.cluster_id, segments, self.end.log_end).run
        self._paths = {segment.base_offset: segment.path for segment in run}
        sizes = [disk.size(segment.path) for segment in run[:-1]]
        self.segments = list(zip(self._paths, [*sizes, size], strict=True))
        self.checkpoints = [
            (one, disk.size(f"{FOLDER}/{one.name}"))
            for one in list_checkpoints(disk)
            if one.offset <= self.end.log_end
        ]
        self.voters = _voters(disk)

    @classmethod
    def of_replica(cls, replica: Replica) -> "FolderSource":
        """Return the source in a replica. Raises BackupError, LedgerError, OSError."""
        if replica.problem:
            raise BackupError(f"{replica.location}: {replica.problem}")
        return cls(replica.disk, replica.location, replica.synced_to)

    def read_segment(self, base_offset: int, position: int, length: int) -> bytes:
        return self._read(self._paths[base_offset], position, length)

    def read_checkpoint(self, checkpoint: CheckpointId, position: int, length: int) -> bytes:
        return self._read(f"{FOLDER}/{checkpoint.name}", position, length)

    def _read(self, path: str, position: int, length: int) -> bytes:
        data = self._disk.read(path, position, length)
        if not data:
            raise LedgerError(f"{self.location}: {path} is shorter than it was")
        return data

    def _end(self, segments: list[Segment], synced_to: LogMark | None) -> tuple[LogMark, int]:
        """Return the mark behind the last whole batch, and its position in the last segment.

        Drops segments at the end that have no whole batch yet.
        """
        while segments:
            segment = segments[-1]
            last = self._last_head(segment, synced_to)
            if last is not None:
                batch = parse(self._disk.read(segment.path, last.position, last.length))
                header = batch.header
                mark = LogMark(header.end_offset, batch.hash, header.epoch, header.timestamp_ms)
                return mark, last.position + last.length
            segments.pop()
        raise BackupError(f"{self.location} holds no batch yet: there is nothing to back up")

    def _last_head(self, segment: Segment, synced_to: LogMark | None) -> Head | None:
        last, synced = None, 0 if synced_to is None else synced_to.log_end
        try:
            for last in walk_heads(self._disk, segment.path, segment.header_length):  # noqa: B007
                pass
        except DamagedBatchError as error:
            reached = segment.base_offset if last is None else last.end_offset
            if reached < synced:
                raise LedgerError(
                    f"{self.location}: {segment.path} is damaged at byte {error.position}: "
                    f"{error.reason}. Back up another controller"
                ) from None
        return last


def _voters(disk: Disk) -> tuple[SavedVoter, ...]:
    """Return the voters that the manifest names; without one, or with a damaged one, none."""
    if not disk.exists(MANIFEST):
        return ()
    try:
        manifest = decode_manifest(disk.read(MANIFEST))
    except DamagedError:
        return ()
    return tuple(SavedVoter(v.node_id, v.directory_id, v.host, v.port) for v in manifest.voters)
