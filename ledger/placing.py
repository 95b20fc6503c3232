"""Puts a finished file in place: sync the file, rename it, sync the folders.

Rule: syncs run in the background, the rename on the loop. So a caller that cancels knows at once
whether the file still has its old name, and nothing else can use that name in between.
"""

from collections.abc import Callable

from runtime.disk.interface import AppendFile, Disk


def place_file(
    disk: Disk,
    file: AppendFile,
    target: str,
    folders: tuple[str, ...],
    on_done: Callable[[OSError | None], None],
) -> Callable[[], None]:
    """Give `file` the name `target`, durably, and close it. Calls back once.

    `folders` are those that the rename changes. Returns a function that cancels: then nothing is
    called back, and a file that is not renamed yet keeps its name.
    """
    cancelled = False

    def cancel() -> None:
        nonlocal cancelled
        cancelled = True

    def synced(error: OSError | None) -> None:
        file.close()
        if cancelled:
            return
        if error is None:
            try:
                disk.rename(file.name, target)
            except OSError as failure:
                error = failure
        if error is not None:
            on_done(error)
            return
        disk.in_background(sync_names, lambda _result, failure: named(failure))

    def sync_names() -> None:
        for folder in folders:
            disk.sync_folder(folder)

    def named(error: OSError | None) -> None:
        if not cancelled:
            on_done(error)

    disk.sync(file, synced)
    return cancel
