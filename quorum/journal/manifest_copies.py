"""Writes the two copies of a manifest, and decides at a start which one to use.

Rule: the file `manifest` is renamed into place first; for a catch-up that is the commit point. The
file `manifest.copy` follows with the same bytes. The core forgets entries only after both are
durable. So the journal never begins behind both copies, and either of them alone fits it.

A start uses the newest sound copy, and writes the other one again, durably, before it looks at
the journal. Example: the power fails between the two renames of a catch-up. The copy is older than
the manifest, and the journal is about to begin at the manifest. If the copy stayed old and the
manifest were damaged later, the copy would no longer fit the journal.

If the newer copy is lost, a start uses the older one. That can't bring back an old state: the
journal then begins behind the copy, which is damage (`quorum.journal.opening`), and a node with a
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
from runtime.disk.interface import Disk

COPY = "manifest.copy"
DAMAGED_SUFFIX = ".damaged"
Found = JournalManifest | DamagedError | None
"""The content of one of the two files; None: there is no such file."""


def write_manifest(disk: Disk, data: bytes) -> None:
    """Make a manifest durable in both files. Blocks. Raises OSError."""
    disk.replace(FILE, data)
    disk.replace(COPY, data)


def read_manifest(
    disk: Disk, log: FilteringBoundLogger
) -> tuple[JournalManifest | None, tuple[str, ...]]:
    """Read the newest sound copy, and write the other one again if it differs. Blocks.

    Returns the manifest, and a sentence for each file that was lost or damaged.
    Raises DamagedError when neither copy can be read, and OSError.
    """
    primary, copy = _find(disk, FILE), _find(disk, COPY)
    if primary is None and copy is None:
        return None, ()
    # A process killed right after the rename leaves a name that is not durable yet.
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
    """Return why a file is written again; empty when the reason is no sign of damage."""
    if isinstance(found, DamagedError):
        return str(found).partition(". ")[0]
    if name == FILE:
        return "it is missing" if found is None else "it is older than the other"
    if found is None or found.mark.index <= chosen.mark.index:
        # Release 0.1 wrote no copy, and a crash leaves an older one.
        return ""
    return "it belongs to another folder"


def _write_again(disk: Disk, name: str, found: Found, data: bytes) -> None:
    """Write one of the two files again. A damaged file is kept beside it as evidence."""
    if isinstance(found, DamagedError):
        disk.rename(name, name + DAMAGED_SUFFIX)
    disk.replace(name, data)
