"""Files with bytes that a loss of power could still destroy.

Rule: a file is closed only when it gets no more bytes and a sync that began after the last byte has
succeeded. Syncs of it that still wait at that time are done anyway (see `Disk`).
"""

from collections.abc import Callable

from ledger.segments import LOG_FOLDER
from runtime.disk.interface import AppendFile, Disk


class UnsyncedFiles:
    """The retired files of a ledger, until they are durable."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._retired: list[AppendFile] = []

    def retire(self, file: AppendFile) -> None:
        """Take over a file that gets no more bytes."""
        self._retired.append(file)

    def sync(self, current: AppendFile | None, on_done: Callable[[OSError | None], None]) -> None:
        """Sync the retired files, the current one and the folder's names. Calls back once."""
        retired = list(self._retired)
        files = [*retired, current] if current is not None else retired
        waiting = len(files) + 1
        failed: OSError | None = None

        def done(error: OSError | None) -> None:
            nonlocal waiting, failed
            failed = failed or error
            waiting -= 1
            if waiting == 0:
                if failed is None:
                    self._close(retired)
                on_done(failed)

        for file in files:
            self._disk.sync(file, done)
        self._disk.in_background(
            lambda: self._disk.sync_folder(LOG_FOLDER), lambda _result, error: done(error)
        )

    def _close(self, durable: list[AppendFile]) -> None:
        for file in durable:
            if file in self._retired:
                self._retired.remove(file)
                file.close()

    def close(self) -> None:
        """Close all files without a sync."""
        for file in self._retired:
            file.close()
        self._retired.clear()
