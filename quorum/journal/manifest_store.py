"""The store of one node's manifest: in memory, on disk, and on its way there.

Rule: a manifest is written whole, synced and renamed, off the loop, before the journal forgets
anything. The newest manifest wins.
"""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from quorum.journal.manifest import FILE, JournalManifest, encode_manifest
from quorum.journal.manifest_copies import read_manifest, write_manifest
from runtime.disk.errors import explain
from runtime.disk.interface import Disk


class ManifestStore:
    """The manifest of one node."""

    def __init__(
        self,
        disk: Disk,
        *,
        on_failed: Callable[[OSError], None],
        log: FilteringBoundLogger,
    ) -> None:
        self._disk = disk
        self._on_failed = on_failed
        self._log = log
        self._current: JournalManifest | None = None
        self._writing: JournalManifest | None = None
        self._to_report: int | None = None
        self.restored: tuple[str, ...] = ()
        """The files that `load` wrote again, a sentence for each."""

    def load(self) -> JournalManifest | None:
        """Read the manifest, at start-up. Blocks. Raises DamagedError, OSError."""
        self._current, self.restored = read_manifest(self._disk, self._log)
        return self._current

    @property
    def current(self) -> JournalManifest | None:
        """The durable manifest."""
        return self._current

    @property
    def writing(self) -> bool:
        """Whether a manifest is being written."""
        return self._writing is not None

    def offer(self, manifest: JournalManifest, on_done: Callable[[bool], None]) -> None:
        """Write `manifest` and, once it is durable, let the core forget the entries before it.

        Calls back True when durable, False when one at least as new is there or on its way.
        """
        self._write(manifest, on_done, report=True)

    def install(self, manifest: JournalManifest, on_done: Callable[[bool], None]) -> None:
        """Like `offer`, for a peer's manifest: the caller gives it to the core."""
        self._write(manifest, on_done, report=False)

    def _write(
        self, manifest: JournalManifest, on_done: Callable[[bool], None], *, report: bool
    ) -> None:
        newest = self._writing or self._current
        if newest is not None and newest.second[1] >= manifest.second[1]:
            on_done(False)
            return
        self._writing = manifest
        data = encode_manifest(manifest)

        def done(_: object, error: OSError | None) -> None:
            if error is not None:
                self._on_failed(explain(error, f"writing the file {FILE}"))
                return
            self._current = manifest
            if self._writing is manifest:
                self._writing = None
            if report:
                self._to_report = manifest.first[1]
            self._log.info("manifest_written", index=manifest.second[1])
            on_done(True)

        self._disk.in_background(lambda: write_manifest(self._disk, data), done)

    def take_report(self) -> int | None:
        """Return, once, the first index of an offered manifest that became durable."""
        index, self._to_report = self._to_report, None
        return index
