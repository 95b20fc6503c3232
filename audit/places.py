"""Where logs are: what people type after `quorate audit`, and the replicas that it means.

Rule: accept what people have. A node's folder, its log folder, the folder of `quorate up` (then
all its controllers), a copy, a folder of nothing but segments, an archive (.tar, .tar.gz, .zip) of
any of these, segments compressed one by one, or a URL of object storage: all are read, none is
written to, and nothing is unpacked on disk.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from audit.folder import NoLogError, node_folders
from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.reader import LedgerReader
from runtime.disk import Disk
from runtime.read_only_disk import ReadOnlyDisk

__all__ = ["NoLogError", "Replica", "one_replica", "open_all", "open_replicas"]


class Replica(msgspec.Struct, frozen=True):
    """One controller's log."""

    name: str
    """The folder's name; unique among those that were opened together."""
    location: str
    """What to show: a path or a URL."""
    disk: Disk
    """Read-only, laid out as a node's folder: `log/`, `archive/`, `checkpoints/`."""
    synced_to: LogMark | None = None
    """The manifest's mark, where there is one: before it every byte must be right."""
    live: bool = False
    """A node may be writing: an unfinished tail is no damage."""

    def reader(self) -> LedgerReader:
        """Open the ledger. Raises NoLogError, LedgerError, OSError."""
        try:
            return LedgerReader(self.disk, synced_to=self.synced_to)
        except LedgerError as error:
            if type(error) is not LedgerError:
                raise
            raise NoLogError(f"{self.location}: {error}") from error


def open_replicas(where: str) -> list[Replica]:
    """Return the replicas that a place means, at least one. Raises NoLogError, OSError."""
    return [
        Replica(folder.name, str(folder), ReadOnlyDisk(folder), live=(folder / "journal").is_dir())
        for folder in node_folders(Path(where))
    ]


def open_all(places: Iterable[str]) -> list[Replica]:
    """Return the replicas of several places, their names made unique. Raises as above."""
    return [replica for where in places for replica in open_replicas(where)]


def one_replica(where: str) -> Replica:
    """Return the replica that a place means; of several the one with the longest log."""
    replicas = open_replicas(where)
    return max(replicas, key=lambda replica: replica.reader().log_end)
