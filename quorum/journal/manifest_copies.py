"""The two copies of a manifest on disk: how they are written, and which one is believed.

Rule: the file `manifest` is renamed into place first, which is the commit point of a catch-up; the
file `manifest.copy` follows with the same bytes. Only when both are durable does the core forget
entries. So the journal never begins behind both, and either of them alone fits it.

At a start the newest sound one is believed, and the other one is written again, durably, before
the journal is looked at. Example: the power fails between the two renames of a catch-up. The copy
is older than the manifest, and the journal is about to begin at the manifest; if the copy stayed
old and the manifest was damaged later, the copy would not fit the journal any more.

An older copy that is believed all the same, because the newer one is lost, can't bring back an old
state: the journal begins behind it, which is damage (`quorum.journal.opening`), and a node with a
damaged journal neither votes nor counts until it has caught up.
"""

from structlog.typing import FilteringBoundLogger

from quorum.journal.damage import DamagedError
from quorum.journal.manifest import (
    FILE,
    JournalManifest,
    LaterFormatError,
    decode_manifest,
    encode_manifest,
)
from runtime.disk import Disk

COPY = "manifest.copy"
DAMAGED_SUFFIX = ".damaged"
Found = JournalManifest | DamagedError | None
"""What one of the two files holds; None: there is no such file."""


def write_manifest(disk: Disk, data: bytes) -> None:
    """Make a manifest durable in both files. Blocks. Raises OSError."""
    disk.replace(FILE, data)
    disk.replace(COPY, data)


def read_manifest(
    disk: Disk, log: FilteringBoundLogger
) -> tuple[JournalManifest | None, tuple[str, ...]]:
    """Read the newest sound copy, and put the other one right. Blocks, for start-up.

    Returns it, and a sentence for each file that was written again because it was lost or damaged.
    Raises DamagedError when neither can be read, and OSError.
    """
    primary, copy = _find(disk, FILE), _find(disk, COPY)
    if primary is None and copy is None:
        return None, ()
    # A name may not be durable yet: a process can be killed right after the rename.
    disk.sync_folder("")
    chosen = _choose(primary, copy)
    if chosen is None:
        raise primary if isinstance(primary, DamagedError) else _as_error(copy)
    said: list[str] = []
    for name, found in ((FILE, primary), (COPY, copy)):
        if found == chosen:
            continue
        why = _why(name, found, chosen)
        _write_again(disk, name, found, encode_manifest(chosen))
        if why:
            said.append(f"the file {name} was written again from the other copy: {why}")
            log.warning("manifest_restored", file=name, why=why)
    return chosen, tuple(said)


def _as_error(found: Found) -> DamagedError:
    assert isinstance(found, DamagedError)
    return found


def _find(disk: Disk, name: str) -> Found:
    if not disk.exists(name):
        return None
    try:
        return decode_manifest(disk.read(name), name)
    except LaterFormatError:
        raise
    except DamagedError as error:
        return error


def _choose(primary: Found, copy: Found) -> JournalManifest | None:
    if not isinstance(primary, JournalManifest):
        return copy if isinstance(copy, JournalManifest) else None
    if not isinstance(copy, JournalManifest) or _whose(copy) != _whose(primary):
        return primary
    return copy if copy.mark.index > primary.mark.index else primary


def _whose(manifest: JournalManifest) -> tuple[str, bytes]:
    return manifest.cluster_id, manifest.directory_id


def _why(name: str, found: Found, chosen: JournalManifest) -> str:
    """Return why a file has to be written again; empty when that is no sign of damage."""
    if isinstance(found, DamagedError):
        return str(found).partition(". ")[0]
    if name == FILE:
        return "it is missing" if found is None else "it is older than the other"
    if found is None or found.mark.index <= chosen.mark.index:
        # Release 0.1 wrote no copy, and a crash leaves an older one.
        return ""
    return "it belongs to another folder"


def _write_again(disk: Disk, name: str, found: Found, data: bytes) -> None:
    """Write one of the two files again; what was damaged is kept beside it as evidence."""
    if isinstance(found, DamagedError):
        disk.rename(name, name + DAMAGED_SUFFIX)
    disk.replace(name, data)
