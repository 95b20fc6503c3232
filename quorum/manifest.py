"""The manifest: where the journal begins, and what stands behind that place.

Rule: it is PySyncObj's "dump", but holds no state: the first two entries that the journal keeps
and, at the second of them, the owner's mark and the voters. It is written whole beside the old
one, synced and renamed, off the loop, before the journal forgets anything; the newest wins.

PySyncObj opens its dump itself and swallows a failed load. Here the manifest is loaded and
verified before the core exists; the core's `Serializer` and `os` are replaced by
`ManifestSerializer` and `replaced_os`, which find the store where the core keeps the dump's
file name: `SyncObjConf(fullDumpFile=store)`. So many nodes can live in one process.

The core needs no compaction of its own (`logCompactionMinEntries`, `logCompactionMinTime` as high
as can be): when an offered manifest is durable, `checkSerializing` reports success once, with
the first entry's index, and the core deletes exactly the entries before it.

File: magic `QRTMANI1`, body length (4 bytes, little endian), CRC-32C of the body, body
(MessagePack array).
"""

import struct
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import google_crc32c
import msgspec
from pysyncobj.config import SERIALIZER_STATE
from structlog.typing import FilteringBoundLogger

from quorum.api import Mark, Voter
from quorum.journal.damage import DamagedError
from quorum.journal.state import Entry
from quorum.terms import TERM_MAX, is_term
from runtime.disk import Disk
from runtime.disk_errors import explain

FILE = "manifest"
FORMAT = 1
_POSITION_MAX = 2**62
_Fields = tuple[str, Entry, Entry, bytes, tuple[tuple[int, bytes, str, int], ...], bytes, int]
"""The body behind the format, as `_manifest_of` takes it."""
_HEAD = struct.Struct("<8sII")
_MAGIC = b"QRTMANI1"


class Manifest(msgspec.Struct, frozen=True):
    """Where a journal begins; see the module."""

    cluster_id: str
    first: Entry
    """The entry before the mark's."""
    second: Entry
    """The entry at the mark."""
    mark_data: bytes
    """Opaque to the quorum."""
    voters: tuple[Voter, ...]
    directory_id: bytes = b""
    """Whose journal `journal_position` speaks of; empty in one made for another node."""
    journal_position: int = 0
    """What was durable in our journal when this was written: a witness of it."""

    @property
    def mark(self) -> Mark:
        """The place in the sequence of entries."""
        return Mark(self.second[1], self.second[2], self.mark_data)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the file's bytes."""
    voters = [[v.node_id, v.directory_id, v.host, v.port] for v in manifest.voters]
    body = msgspec.msgpack.encode(
        [
            FORMAT,
            manifest.cluster_id,
            manifest.first,
            manifest.second,
            manifest.mark_data,
            voters,
            manifest.directory_id,
            manifest.journal_position,
        ]
    )
    return _HEAD.pack(_MAGIC, len(body), google_crc32c.value(body)) + body


def decode_manifest(data: bytes, name: str = FILE) -> Manifest:
    """Read a manifest, from a file or a peer. Raises DamagedError; `name` says of what."""
    if len(data) < _HEAD.size:
        raise _damaged(name, f"it has only {len(data)} bytes")
    magic, length, crc = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if magic != _MAGIC:
        raise _damaged(name, "it does not begin as a manifest does")
    if len(body) != length:
        raise _damaged(name, f"it has {len(body)} bytes of body, not {length}")
    if google_crc32c.value(body) != crc:
        raise _damaged(name, "its checksum is wrong")
    try:
        version, *fields = msgspec.msgpack.decode(body)
        if version != FORMAT:
            raise DamagedError(
                f"the file {name} has format {version}, this release reads {FORMAT}: use the "
                "release that wrote it"
            )
        manifest = _manifest_of(*msgspec.convert(fields, _Fields))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        # A checksum proves nothing of what a peer made up.
        raise _damaged(name, f"its body is not that of a manifest ({error})") from error
    what = _contradiction(manifest)
    if what:
        raise _damaged(name, what)
    return manifest


def _manifest_of(
    cluster_id: str,
    first: Entry,
    second: Entry,
    mark_data: bytes,
    voters: tuple[tuple[int, bytes, str, int], ...],
    directory_id: bytes,
    position: int,
) -> Manifest:
    return Manifest(
        cluster_id=cluster_id,
        first=first,
        second=second,
        mark_data=mark_data,
        voters=tuple(Voter(*voter) for voter in voters),
        directory_id=directory_id,
        journal_position=position,
    )


def _contradiction(manifest: Manifest) -> str:
    """Return what no sound node would have written; empty: nothing."""
    _, first, first_term = manifest.first
    _, second, second_term = manifest.second
    if not (is_term(first_term) and is_term(second_term)):
        return f"it names epoch {max(first_term, second_term)}, and epochs end at {TERM_MAX}"
    if not (0 < first < _POSITION_MAX and second == first + 1 and first_term <= second_term):
        return f"its entry {second} of epoch {second_term} can't follow {first} of {first_term}"
    if not 0 <= manifest.journal_position < _POSITION_MAX:
        return f"it names position {manifest.journal_position} of the journal"
    return ""


def _damaged(name: str, what: str) -> DamagedError:
    return DamagedError(
        f"the file {name} is damaged: {what}. Restore it, or move the node's whole folder away; "
        "with an empty one the node fetches everything from its peers, as an observer: it does not "
        "vote"
    )


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

    def load(self) -> Manifest | None:
        """Read the file, at start-up. Blocks. Raises DamagedError, OSError."""
        if self._disk.exists(FILE):
            # Its name may not be durable yet: a process can be killed right after the rename.
            self._disk.sync_folder("")
            self._current = decode_manifest(self._disk.read(FILE))
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

        self._disk.in_background(lambda: self._disk.replace(FILE, data), done)

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
