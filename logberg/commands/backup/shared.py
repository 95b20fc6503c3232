"""What the commands of `logberg backup` share: expected errors, moments, and facts in words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from audit.places.replicas import NoLogError
from audit.reading.dump import utc
from audit.reading.moments import MomentError, offset_of
from ledger.errors import LedgerError
from logberg.backups.backup_format import BackupError, BackupHeader
from logberg.backups.reading import BackupFacts
from logberg.backups.restoring import CutPoint
from logberg.cli.failure import Failure
from metadata.codec import RecordDecodeError
from metadata.image import ReplayError
from quorum.journal.damage import DamagedError
from runtime.disk.interface import FolderInUseError
from snapshots.errors import CheckpointError

_EXPECTED: Final = (
    BackupError,
    CheckpointError,
    DamagedError,
    FolderInUseError,
    LedgerError,
    MomentError,
    NoLogError,
    RecordDecodeError,
    ReplayError,
    OSError,
)

backup_argument = click.argument("backup", metavar="BACKUP")
at_option = click.option(
    "--at",
    metavar="OFFSET|TIME",
    help="End the log at this offset or time (2026-11-20T10:00:00Z, or -2h: that long before the "
    "backup's last change). Default: all of it.",
)


@contextmanager
def failing() -> Iterator[None]:
    """Turn expected errors into a Failure."""
    try:
        yield
    except BrokenPipeError:
        raise
    except _EXPECTED as error:
        raise Failure(str(error)) from None


class _Dated:
    """A backup's log, of which only the ends are known."""

    def __init__(self, header: BackupHeader) -> None:
        self._header = header
        self.log_start = header.start.log_end
        self.log_end = header.end.log_end
        self.start_timestamp_ms = header.start.timestamp_ms
        self.time_ms: int | None = None

    def end_of_batch(self, offset: int) -> int:
        return offset

    def last_timestamp_ms(self) -> int:
        return self._header.end.timestamp_ms

    def offset_at_time(self, timestamp_ms: int) -> int:
        # The restore finds the batch while it reads them.
        self.time_ms = timestamp_ms
        return self.log_end


def moment_of(header: BackupHeader, at: str | None) -> CutPoint:
    """Return where a restored log ends. Raises MomentError."""
    if at is None:
        return CutPoint()
    dated = _Dated(header)
    offset = offset_of(dated, at)
    return CutPoint(offset=offset) if dated.time_ms is None else CutPoint(time_ms=dated.time_ms)


def in_json(name: str, size: int, header: BackupHeader) -> dict[str, Any]:
    """Return what a backup's header says, for programs."""
    return {
        "name": name,
        "bytes": size,
        "clusterId": header.cluster_id,
        "madeAt": utc(header.made_at_ms),
        "madeAtMs": header.made_at_ms,
        "release": header.release,
        "source": header.source,
        "logStart": header.start.log_end,
        "logEnd": header.end.log_end,
        "lastChange": utc(header.end.timestamp_ms),
        "epoch": header.end.epoch,
        "head": header.end.head.hex(),
        "checkpoint": header.checkpoint,
        "voters": [
            {"nodeId": each.node_id, "host": each.host, "port": each.port} for each in header.voters
        ],
    }


def facts_in_json(name: str, facts: BackupFacts) -> dict[str, Any]:
    """Return what was verified of a backup, for programs."""
    return {
        **in_json(name, facts.size, facts.header),
        "batches": facts.batches,
        "records": facts.records,
        "sha256": facts.footer.digest.hex(),
    }


def facts_in_words(facts: BackupFacts) -> list[tuple[str, Any]]:
    """Return what was verified of a backup, for people."""
    header = facts.header
    return [
        ("cluster", header.cluster_id),
        ("made", f"{utc(header.made_at_ms)} from {header.source}"),
        ("log", f"offsets {header.start.log_end} to {header.end.log_end}, {facts.batches} batches"),
        ("last change", utc(header.end.timestamp_ms)),
        ("head", header.end.head.hex()),
        ("checkpoint", header.checkpoint or "none"),
        ("bytes", f"{facts.size:,}"),
        ("sha256", facts.footer.digest.hex()),
    ]
