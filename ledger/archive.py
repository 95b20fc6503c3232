"""Moves closed segments from `log/` to `archive/`. They can still be read there.

Rule: a segment is moved whole and never changed. Nothing is deleted.
"""

from ledger.catalogue import Catalogue
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER
from runtime.disk.interface import Disk


def archive_segments(disk: Disk, catalogue: Catalogue, before: int) -> list[str]:
    """Move the closed segments that end at or before an offset; return their file names."""
    moved: list[str] = []
    for segment, after in zip(catalogue.segments, catalogue.segments[1:], strict=False):
        folder, name = segment.path.split("/")
        if after.base_offset > before or folder == ARCHIVE_FOLDER:
            continue
        if not moved:
            disk.make_folder(ARCHIVE_FOLDER)
        disk.rename(segment.path, f"{ARCHIVE_FOLDER}/{name}")
        segment.path = f"{ARCHIVE_FOLDER}/{name}"
        moved.append(name)
    if moved:
        disk.sync_folder(ARCHIVE_FOLDER)
        disk.sync_folder(LOG_FOLDER)
    return moved
