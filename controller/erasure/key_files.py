"""Trees of subjects' keys as files: in this controller's folder, and in a peer's.

Rule: a file is sealed under the cluster key, on disk and on its way between controllers. A tree
from a peer is used only after this controller has destroyed in it what its own log says is erased.
"""

from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from metadata.sealed_blocks import SealingError
from metadata.sealed_places import opened_tree, tree_place
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys, SubjectKeysError
from quorum.api import PeerFile, Quorum
from runtime.disk.interface import Disk

FOLDER: Final = "keys"
_PIECE_BYTES: Final = 1024 * 1024
_RANDOM_BYTES: Final = 16
OnFetched = Callable[[SubjectKeys | None], None]


class KeyFiles:
    """The trees in one controller's folder."""

    def __init__(
        self,
        disk: Disk,
        key: ClusterKey,
        draw: Callable[[int], bytes],
        log: FilteringBoundLogger,
    ) -> None:
        """`draw` returns so many random bytes of the system."""
        self._disk = disk
        self._key = key
        self._draw = draw
        self._log = log
        self._newest: tuple[SubjectKeys, bytes] | None = None
        """The tree that was read or written last, and its file."""

    def load(self) -> dict[bytes, SubjectKeys]:
        """Return the trees here that can be opened, by id. Raises OSError."""
        self._disk.make_folder(FOLDER)
        found: dict[bytes, SubjectKeys] = {}
        for name in self._disk.list(FOLDER):
            if name.endswith(".part"):
                self._disk.unlink(f"{FOLDER}/{name}")
                continue
            data = self._disk.read(f"{FOLDER}/{name}")
            try:
                keys = opened_tree(self._key, name, data)
            except (SealingError, SubjectKeysError) as error:
                self._log.warning("subject_keys_unreadable", file=name, why=str(error))
                continue
            found[keys.id] = keys
            self._newest = keys, data
        return found

    def write(self, keys: SubjectKeys, on_done: Callable[[OSError | None], None]) -> None:
        """Write a tree in place of what its file held; then call `on_done`.

        It is sealed in the background too: after many erasures that takes tens of milliseconds.
        """
        random_bytes = self._draw(_RANDOM_BYTES)

        def write() -> bytes:
            data = self._seal(keys, random_bytes)
            self._disk.replace(f"{FOLDER}/{keys.id.hex()}", data)
            return data

        def done(data: bytes | None, error: OSError | None) -> None:
            if data is not None:
                self._newest = keys, data
            on_done(error)

        self._disk.in_background(write, done)

    def keep_only(self, keys_id: bytes) -> None:
        """Remove the files of all other trees; what the disk keeps now goes at the next start."""

        def remove() -> None:
            others = [name for name in self._disk.list(FOLDER) if name != keys_id.hex()]
            for name in others:
                self._disk.unlink(f"{FOLDER}/{name}")
            if others:
                self._disk.sync_folder(FOLDER)

        self._disk.in_background(remove, lambda _, _error: None)

    def sealed(self, keys: SubjectKeys) -> bytes:
        """Return a tree sealed, as it is in its file."""
        if self._newest is None or self._newest[0] is not keys:
            self._newest = keys, self._seal(keys, self._draw(_RANDOM_BYTES))
        return self._newest[1]

    def _seal(self, keys: SubjectKeys, random_bytes: bytes) -> bytes:
        return self._key.seal(tree_place(keys.id.hex()), keys.encode(), random_bytes).block

    def fetch(self, quorum: Quorum, node_id: int, keys_id: bytes, on_fetched: OnFetched) -> None:
        """Read a tree from a peer, in pieces; None: the peer has none that can be opened."""
        name = keys_id.hex()
        pieces: list[bytes] = []

        def take(piece: PeerFile | None) -> None:
            if piece is None or not piece.data:
                on_fetched(None)
                return
            pieces.append(piece.data)
            position = sum(map(len, pieces))
            if position < piece.total_size:
                quorum.read_file(node_id, f"{FOLDER}/{name}", position, _PIECE_BYTES, take)
                return
            try:
                on_fetched(opened_tree(self._key, name, b"".join(pieces)))
            except (SealingError, SubjectKeysError) as error:
                self._log.warning("subject_keys_refused", peer=node_id, why=str(error))
                on_fetched(None)

        quorum.read_file(node_id, f"{FOLDER}/{name}", 0, _PIECE_BYTES, take)
