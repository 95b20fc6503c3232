"""Restores a backup into folders of this machine: all of them, or none.

Rule: a folder that is there and not empty is refused before anything is read. Each new folder is
filled under another name beside its place (`.restoring`) and renamed when all of them are done. A
restore that fails removes them again, also those that it had renamed.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from audit.places.folder import may_be_written
from logberg.backups.backup_format import BackupError
from logberg.backups.reading import BackupFile
from logberg.backups.restoring import CutPoint, Restored, RestoreOrder, restore_backup
from runtime.disk.real import LOCK_NAME, RealDisk

_RESTORING: Final = ".restoring"


def restore_folders(
    file: BackupFile,
    folders: Mapping[int, Path],
    new: RestoreOrder,
    *,
    cluster_id: str,
    segment_bytes: int,
    moment: CutPoint,
    on_progress: Callable[[int, int], None],
) -> Restored:
    """Restore a backup into each voter's folder, by its node id. Raises BackupError, OSError."""
    for folder in folders.values():
        _refuse_content(folder)
    beside = {node_id: _beside(folder) for node_id, folder in folders.items()}
    moved: list[Path] = []
    disks = {node_id: RealDisk(path) for node_id, path in beside.items()}
    try:
        for disk in disks.values():
            disk.lock()
        _check_room(file, disks)
        restored = restore_backup(
            file,
            disks,
            new,
            cluster_id=cluster_id,
            segment_bytes=segment_bytes,
            moment=moment,
            on_progress=on_progress,
        )
        _close(disks)
        for node_id, folder in folders.items():
            _move(beside[node_id], folder)
            moved.append(folder)
    except BaseException:
        _close(disks)
        # One voter's folder alone must not stay: a second try would refuse it, and draw others.
        for path in (*beside.values(), *moved):
            shutil.rmtree(path, ignore_errors=True)
        raise
    return restored


def _refuse_content(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    running = may_be_written(folder) if folder.is_dir() else False
    what = "holds a node's data, and its node may run" if running else "is not empty"
    raise BackupError(
        f"{folder} {what}: nothing is restored over it. Stop the node and move the folder away, or "
        "name another one"
    )


def _beside(folder: Path) -> Path:
    path = folder.with_name(folder.name + _RESTORING)
    if path.exists():
        raise BackupError(
            f"{path} is there: a restore runs, or was interrupted. If none runs, remove it"
        )
    return path


def _check_room(file: BackupFile, disks: Mapping[int, RealDisk]) -> None:
    """Refuse what can't fit, before anything is written."""
    size = file.size()
    by_device: dict[int, list[RealDisk]] = {}
    for disk in disks.values():
        by_device.setdefault(disk.root.stat().st_dev, []).append(disk)
    for here in by_device.values():
        wanted, free = size * len(here), here[0].free_bytes()
        if free < wanted:
            raise BackupError(
                f"{here[0].root.parent} has {free:,} bytes free, and {wanted:,} are needed: make "
                "room, or restore elsewhere"
            )


def _move(source: Path, target: Path) -> None:
    (source / LOCK_NAME).unlink(missing_ok=True)
    # An empty folder at the target is replaced.
    source.rename(target)
    fd = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _close(disks: Mapping[int, RealDisk]) -> None:
    for disk in disks.values():
        disk.close()
