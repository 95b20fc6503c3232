"""The snapshots of running controllers, as the folder `checkpoints/` of a tree of files.

Rule: a snapshot is read in order, in pieces of 1 MiB, and never asked for twice. A controller of a
release that doesn't list its snapshots counts as one that has none.
"""

import errno
from collections.abc import Callable
from typing import Any, Final

from ledger.errors import LedgerError
from logberg.client.client_errors import ClientError
from logberg.client.remote_log import Run, Sources
from metadata.errors import ErrorCode
from metadata.messages.snapshots import ListSnapshotsReply
from snapshots.checkpoint import FOLDER, CheckpointId

_PIECE_BYTES: Final = 1024 * 1024
OnRead = Callable[[int, int], None]
"""Called with the bytes of a snapshot that are here, and all of them."""


class RemoteSnapshots:
    """An `audit.places.remote.Tree` that has snapshots only."""

    def __init__(self, sources: Sources, run: Run[Any], on_read: OnRead) -> None:
        self._sources = sources
        self._run = run
        self._on_read = on_read
        self._sizes: dict[str, int] | None = None
        self._piece = ("", 0, b"")
        """The piece that was read last: path, position, bytes."""
        self.location = sources.location
        self.unlisted = False
        """The controllers' release doesn't list snapshots."""

    def files(self, folder: str) -> list[str]:
        return sorted(self._listed()) if folder == FOLDER else []

    def folders(self, folder: str) -> list[str]:
        return [] if folder else [FOLDER]

    def size(self, path: str) -> int:
        name = path.removeprefix(f"{FOLDER}/")
        if name not in self._listed():
            raise FileNotFoundError(errno.ENOENT, "no such snapshot", path)
        return self._listed()[name]

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        """Return up to `length` bytes. Raises FileNotFoundError, OSError."""
        size = self.size(path)
        end = size if length is None else min(size, position + length)
        found = bytearray()
        while position < end:
            of, begin, piece = self._piece
            if of != path or not begin <= position < begin + len(piece):
                piece, begin = self._fetched(path, position), position
                self._piece = (path, begin, piece)
                self._on_read(begin + len(piece), size)
            part = piece[position - begin : end - begin]
            found += part
            position += len(part)
        return bytes(found)

    def _listed(self) -> dict[str, int]:
        if self._sizes is None:
            self._sizes = self._list()
        return self._sizes

    def _list(self) -> dict[str, int]:
        """Return the sizes of all snapshots, by file name. Raises ClientError."""
        sizes: dict[str, int] = {}
        query: dict[str, str] = {}
        while True:
            try:
                reply = self._run(self._sources.ask("/v1/snapshots", ListSnapshotsReply, query))
            except ClientError as error:
                if error.code != ErrorCode.NOT_FOUND:
                    raise
                self.unlisted = True
                return sizes
            for each in reply.snapshots:
                sizes[CheckpointId.parse(each.id).name] = each.size
            oldest = min((each.offset for each in reply.snapshots), default=0)
            if not reply.more or query == {"upTo": str(oldest - 1)} or oldest < 1:
                return sizes
            query = {"upTo": str(oldest - 1)}

    def _fetched(self, path: str, position: int) -> bytes:
        name = path.removeprefix(f"{FOLDER}/").removesuffix(".checkpoint")
        span = {"range": f"bytes={position}-{position + _PIECE_BYTES - 1}"}
        try:
            piece: bytes = self._run(self._sources.ask(f"/v1/snapshots/{name}", bytes, {}, span))
        except ClientError as error:
            if error.code == ErrorCode.SNAPSHOT_NOT_FOUND:
                raise FileNotFoundError(errno.ENOENT, str(error), path) from None
            raise OSError(errno.EIO, str(error), path) from None
        if not piece:
            raise LedgerError(f"{self.location}: snapshot {name} ends too early")
        return piece
