"""The store of one node's manifest, and what PySyncObj sees in the place of its dump.

Rule: a manifest is written whole, synced and renamed, off the loop, before the journal forgets
anything; the newest wins.

PySyncObj opens its dump itself and swallows a failed load. Here the manifest is loaded and
verified before the core exists; the core's `Serializer` and `os` are replaced by
`ManifestSerializer` and `replaced_os`, which find the store where the core keeps the dump's
file name: `SyncObjConf(fullDumpFile=store)`. So many nodes can live in one process.

The core needs no compaction of its own (`logCompactionMinEntries`, `logCompactionMinTime` as high
as can be): when an offered manifest is durable, `checkSerializing` reports success once, with
the first entry's index, and the core deletes exactly the entries before it.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from pysyncobj.config import SERIALIZER_STATE
from structlog.typing import FilteringBoundLogger

from quorum.api import Voter
from quorum.journal.manifest import FILE, Manifest, encode_manifest
from quorum.journal.manifest_copies import read_manifest, write_manifest
from quorum.journal.state import Entry
from runtime.disk import Disk
from runtime.disk_errors import explain


class ManifestStore:
    """The manifest of one node: in memory, on disk, and on its way there."""

    def __init__(
        self,
        disk: Disk,
        *,
        to_node: Callable[[Voter], object],
        on_failed: Callable[[OSError], None],
        log: FilteringBoundLogger,
    ) -> None:
        self.to_node = to_node
        """Makes the core's node object for a voter."""
        self._disk = disk
        self._on_failed = on_failed
        self._log = log
        self._current: Manifest | None = None
        self._writing: Manifest | None = None
        self._to_report: int | None = None
        self.restored: tuple[str, ...] = ()
        """What `load` put right, a sentence for each file."""

    def load(self) -> Manifest | None:
        """Read it, at start-up. Blocks. Raises DamagedError, OSError."""
        self._current, self.restored = read_manifest(self._disk, self._log)
        return self._current

    @property
    def current(self) -> Manifest | None:
        """The durable manifest."""
        return self._current

    @property
    def writing(self) -> bool:
        """Whether one is on its way to the disk."""
        return self._writing is not None

    def offer(self, manifest: Manifest, on_done: Callable[[bool], None]) -> None:
        """Make `manifest` the node's and, once durable, let the core forget entries before it.

        Calls back True when durable, False when one at least as new is there or on its way.
        """
        self._write(manifest, on_done, report=True)

    def install(self, manifest: Manifest, on_done: Callable[[bool], None]) -> None:
        """As `offer`, for a manifest of a peer: the core is told by whoever calls."""
        self._write(manifest, on_done, report=False)

    def _write(self, manifest: Manifest, on_done: Callable[[bool], None], *, report: bool) -> None:
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


class ManifestSerializer:
    """In the place of `pysyncobj.syncobj.Serializer`; the dump's "file name" is our store."""

    def __init__(
        self,
        fileName: ManifestStore,  # noqa: N803 - the core's name
        transmissionBatchSize: int,  # noqa: N803
        tryUseFork: bool,  # noqa: N803
        serializer: object,
        deserializer: object,
        serializeChecker: object,  # noqa: N803
    ) -> None:
        self._store = fileName

    def checkSerializing(self) -> tuple[int, int | None]:  # noqa: N802
        """Tell the core how an offered manifest fares."""
        index = self._store.take_report()
        if index is not None:
            return SERIALIZER_STATE.SUCCESS, index
        if self._store.writing:
            return SERIALIZER_STATE.SERIALIZING, None
        return SERIALIZER_STATE.NOT_SERIALIZING, None

    def serialize(self, data: object, id: int) -> None:  # noqa: A002
        """Nothing: manifests are offered, never made from what the core happens to have applied."""

    def deserialize(self) -> tuple[None, Entry, Entry, Sequence[Any]]:
        """Return the loaded manifest in the shape of the core's dump. Never fails."""
        manifest = self._store.current
        assert manifest is not None
        nodes = [self._store.to_node(voter) for voter in manifest.voters]
        return None, manifest.second, manifest.first, nodes

    def getTransmissionData(self, transmissionID: object) -> tuple[bytes, bool, bool]:  # noqa: N802, N803
        """Return the whole manifest as one chunk.

        Empty when there is none: the core would ask in a tight loop if it got nothing.
        """
        manifest = self._store.current
        return (encode_manifest(manifest) if manifest else b"", True, True)

    def setTransmissionData(self, data: tuple[bytes, bool, bool] | None) -> bool:  # noqa: N802
        """Let the core load the store's manifest.

        Only the guard calls for this, with `(encode_manifest(store.current), True, True)`, once a
        manifest is installed; anything else is not taken.
        """
        if data is None or self._store.current is None:
            return False
        return bytes(data[0]) == encode_manifest(self._store.current)

    def cancelTransmisstion(self, id: object) -> None:  # noqa: N802, A002
        """Nothing is held for a transmission."""


def _isfile(store: object) -> bool:
    return isinstance(store, ManifestStore) and store.current is not None


replaced_os = SimpleNamespace(path=SimpleNamespace(isfile=_isfile))
"""In the place of `pysyncobj.syncobj.os`, of which the core uses `path.isfile` only."""
