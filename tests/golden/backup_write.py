"""Writes the golden backup. Run it only for a new format: an old one is kept for ever.

python -m tests.golden.backup_write
"""

import tempfile
from pathlib import Path

from audit.generated.writing import write_history
from audit.places.replicas import one_replica
from logberg.backups.making import WantedBackup
from logberg.backups.places import place_of
from logberg.backups.sources import FolderSource
from logberg.backups.store import create_backup

FOLDER = Path(__file__).parent / "backup-format-1"
MADE_AT_MS = 1_795_000_000_000


def write() -> None:
    """Write a backup of a short made-up history."""
    with tempfile.TemporaryDirectory() as folder:
        write_history(Path(folder), records=150, checkpoint_every=80)
        replica = one_replica(f"{folder}/controller-1")
        source = FolderSource.of_replica(replica)
        source.location = "controller-1"
        wanted = WantedBackup(MADE_AT_MS, "0.2.0")
        create_backup(source, place_of(str(FOLDER)), wanted, lambda *_: None)


if __name__ == "__main__":
    write()
