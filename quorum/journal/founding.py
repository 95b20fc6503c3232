"""Writes a journal that begins at a manifest, into a folder that has none.

Rule: the manifest is written when the journal that names the voters is durable. Then the journal is
opened once more, which is how a catch-up is completed: it begins again with the manifest's entries.
"""

import msgspec
from structlog.typing import FilteringBoundLogger

from quorum.journal.damage import DamagedError
from quorum.journal.identity import FOLDER
from quorum.journal.journal import RaftJournal
from quorum.journal.manifest import FILE, JournalManifest, encode_manifest
from quorum.journal.manifest_copies import write_manifest
from runtime.disk.interface import Disk


def found_journal(
    disk: Disk,
    node_id: int,
    manifest: JournalManifest,
    formation: bytes,
    log: FilteringBoundLogger,
) -> None:
    """Write a journal and the manifest at which it begins. Blocks. Raises DamagedError, OSError."""
    if disk.list(FOLDER) or disk.exists(FILE):
        raise DamagedError(f"{FOLDER}/ or {FILE} is there already: found a node in an empty folder")
    journal = _open(disk, node_id, manifest, None, log)
    journal.set_formation(formation)
    journal.close()
    here = msgspec.structs.replace(manifest, journal_position=journal.durable_position)
    write_manifest(disk, encode_manifest(here))
    _open(disk, node_id, here, here, log).close()


def _open(
    disk: Disk,
    node_id: int,
    whose: JournalManifest,
    begins_at: JournalManifest | None,
    log: FilteringBoundLogger,
) -> RaftJournal:
    return RaftJournal.open(
        disk,
        cluster_id=whose.cluster_id,
        node_id=node_id,
        new_directory_id=whose.directory_id,
        manifest=begins_at,
        on_durable=lambda: None,
        on_failed=_failed,
        log=log,
    )


def _failed(error: OSError) -> None:
    raise error
