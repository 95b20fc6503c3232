"""What PySyncObj finds in the place of its dump file: the manifest, through its store.

PySyncObj opens its dump itself and swallows a failed load. Here the manifest is loaded and
verified before the core exists. `core_world` replaces the library's `Serializer` and `os` by
`CoreDump` and `replaced_os`. Both find the store where the core keeps the dump's file name:
`SyncObjConf(fullDumpFile=store)`. So many nodes can live in one process.

The core never compacts on its own (`logCompactionMinEntries`, `logCompactionMinTime` as high as
can be). When an offered manifest is durable, `checkSerializing` reports success once, with the
first entry's index, and the core deletes exactly the entries before it.
"""

from collections.abc import Sequence
from types import SimpleNamespace

from pysyncobj.config import SERIALIZER_STATE

from quorum.journal import Entry
from quorum.journal.manifest import encode_manifest
from quorum.journal.manifest_store import ManifestStore
from quorum.raft.core_node import CoreNode


class CoreDump:
    """Stands in for `pysyncobj.syncobj.Serializer`."""

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
        """Say how an offered manifest fares."""
        index = self._store.take_report()
        if index is not None:
            return SERIALIZER_STATE.SUCCESS, index
        if self._store.writing:
            return SERIALIZER_STATE.SERIALIZING, None
        return SERIALIZER_STATE.NOT_SERIALIZING, None

    def serialize(self, data: object, id: int) -> None:  # noqa: A002
        """Do nothing: manifests are offered, never made from what the core has applied."""

    def deserialize(self) -> tuple[None, Entry, Entry, Sequence[CoreNode]]:
        """Return the loaded manifest in the shape of the core's dump. Never fails."""
        manifest = self._store.current
        assert manifest is not None
        nodes = [CoreNode(voter.node_id, voter.directory_id) for voter in manifest.voters]
        return None, manifest.second, manifest.first, nodes

    def getTransmissionData(self, transmissionID: object) -> tuple[bytes, bool, bool]:  # noqa: N802, N803
        """Return the whole manifest as one chunk.

        Empty when there is none: the core would ask in a tight loop if it got nothing.
        """
        manifest = self._store.current
        return (encode_manifest(manifest) if manifest else b"", True, True)

    def setTransmissionData(self, data: tuple[bytes, bool, bool] | None) -> bool:  # noqa: N802
        """Let the core load the store's manifest.

        Only the guard sends it, as `messages.Install`, once the store has made it durable. The
        core takes no other.
        """
        if data is None or self._store.current is None:
            return False
        return bytes(data[0]) == encode_manifest(self._store.current)

    def cancelTransmisstion(self, id: object) -> None:  # noqa: N802, A002
        """Do nothing: nothing is held for a transmission."""


def _isfile(store: object) -> bool:
    return isinstance(store, ManifestStore) and store.current is not None


replaced_os = SimpleNamespace(path=SimpleNamespace(isfile=_isfile))
"""Stands in for `pysyncobj.syncobj.os`, of which the core uses `path.isfile` only."""
