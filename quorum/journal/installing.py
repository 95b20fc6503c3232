"""Gives a stopped node's folder a new journal and manifest, in one step that a crash can't halve.

Rule: the new files are written beside the old ones, whole and durable, in `new-generation/`. Then
the file `install` appears there: that is the commit point. Before it, the folder is what it was.
After it, `finish_installation` moves the old files away and the new ones in, as often as it takes:
`quorum recover` calls it at once, and every start of a node calls it first.

The old files are kept as they were, in a folder whose name the caller gives. The ledger and the
checkpoints stay where they are.
"""

import msgspec

from quorum.journal.damage import DamagedError
from quorum.journal.frames import JournalFrameKind
from quorum.journal.identity import FOLDER, JournalIdentity
from quorum.journal.manifest import FILE as MANIFEST
from quorum.journal.manifest import JournalManifest, encode_manifest
from quorum.journal.manifest_copies import COPY
from quorum.journal.replacement import SegmentReplacement
from quorum.journal.state import JournalState, entry_body
from runtime.disk.interface import Disk

STAGED = "new-generation"
MARKER = f"{STAGED}/install"
_MANIFEST = f"{STAGED}/{MANIFEST}"
_FORMAT = 1


class Installation(msgspec.Struct, frozen=True):
    """What the file `install` says."""

    format: int
    segment: str
    """The path of the new journal's one segment."""
    keep: str
    """The folder for the old files."""
    moves: tuple[str, ...]
    """The old manifest and its copy, as far as they were there."""


def stage_journal(
    disk: Disk,
    identity: JournalIdentity,
    sequence: int,
    state: JournalState,
    manifest: JournalManifest,
    keep: str,
) -> None:
    """Write the new files, and then the file that makes them count. Blocks. Raises OSError.

    `sequence` must be above those of the old journal's segments.
    """
    disk.make_folder(FOLDER)
    disk.make_folder(STAGED)
    if disk.exists(MARKER):
        finish_installation(disk)
    for name in disk.list(STAGED):
        disk.unlink(f"{STAGED}/{name}")
    segment = SegmentReplacement(identity, sequence, 0, fresh=True)
    segment.add(JournalFrameKind.STATE, state.encode(0))
    for entry in state.entries:
        segment.add(JournalFrameKind.ENTRY, entry_body(entry))
    staged = segment.name.replace(FOLDER, STAGED, 1)
    segment.write(disk, JournalFrameKind.NOTE, b"", name=staged)
    disk.replace(_MANIFEST, encode_manifest(manifest))
    moves = tuple(name for name in (COPY, MANIFEST) if disk.exists(name))
    said = Installation(_FORMAT, segment.name, keep, moves)
    disk.replace(MARKER, msgspec.json.encode(said))


def finish_installation(disk: Disk) -> Installation | None:
    """Move the old files away and the new ones in; None: nothing waits. Blocks.

    Raises DamagedError, OSError.
    """
    if not disk.exists(MARKER):
        return None
    said = _read_marker(disk)
    disk.make_folder(f"{said.keep}/{FOLDER}")
    _keep_journal(disk, said)
    _move(disk, said.segment.replace(FOLDER, STAGED, 1), said.segment, FOLDER)
    _install_manifest(disk, said)
    disk.unlink(MARKER)
    disk.sync_folder(STAGED)
    return said


def _read_marker(disk: Disk) -> Installation:
    try:
        said = msgspec.json.decode(disk.read(MARKER), type=Installation)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DamagedError(
            f"the file {MARKER} is damaged ({error}), so the recovery can't be finished. To go "
            f"back to before it, move journal/ and manifest of the folder before-generation-N back "
            f"into place, and {STAGED}/ away; then recover again"
        ) from error
    if said.format != _FORMAT:
        raise DamagedError(
            f"the file {MARKER} has format {said.format}, this release reads {_FORMAT}: use the "
            "release that wrote it"
        )
    return said


def _keep_journal(disk: Disk, said: Installation) -> None:
    for short in disk.list(FOLDER):
        name = f"{FOLDER}/{short}"
        if name != said.segment:
            disk.rename(name, f"{said.keep}/{name}")
    disk.sync_folder(f"{said.keep}/{FOLDER}")
    disk.sync_folder(FOLDER)


def _install_manifest(disk: Disk, said: Installation) -> None:
    if not disk.exists(_MANIFEST):
        return
    for name in said.moves:
        kept = f"{said.keep}/{name}"
        if disk.exists(name) and not disk.exists(kept):
            disk.rename(name, kept)
        elif disk.exists(name) and name == COPY:
            disk.unlink(name)
        # Else it is kept already, and what lies here after a crash may be the new manifest.
    disk.sync_folder(said.keep)
    disk.sync_folder("")
    # A start of the node writes the copy.
    _move(disk, _MANIFEST, MANIFEST, "")


def _move(disk: Disk, source: str, target: str, folder: str) -> None:
    """Move a file, durably. After a crash it may be in both places: both hold the same."""
    if disk.exists(source):
        disk.rename(source, target)
        disk.sync_folder(folder)
        disk.sync_folder(STAGED)
