"""Archives and compressed segments, as trees of files that are read in ranges.

Rule: nothing is unpacked on disk, and no file is held in memory as a whole. A .tar and a stored
.zip are read in place, so reading from object storage fetches only the requested ranges. A
compressed stream can only be read forward. Going back starts again from the beginning; a cache of
blocks makes that rare (`CachedTree`).
"""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import IO, Any, Final

from audit.places.folder import NoLogError
from audit.places.remote import Tree
from audit.places.streams import BLOCK_BYTES, CachedTree, RewindingStream, buffered

_PIECE_BYTES: Final = 8 * 1024
_OPEN_FILES: Final = 4
_PACKED: Final = ".gz"
_TARS: Final = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst")
_BROKEN: Final = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error)


def is_archive(name: str) -> bool:
    """Return whether a file is an archive that can be opened, judged by its name."""
    return name.lower().endswith((*_TARS, ".zip"))


def open_archive(tree: Tree, path: str) -> Tree:
    """Open an archive in a tree. Raises NoLogError, OSError."""
    shown = f"{tree.location}/{path}" if path else tree.location
    name = path.lower()
    try:
        if name.endswith(".zip"):
            return CachedTree(_ZipTree(buffered(tree, path), shown))
        if name.endswith(".tar"):
            return _TarTree(buffered(tree, path), shown)
        if name.endswith(("zst", "tzst")):
            forward = RewindingStream(lambda: _zstd(tree, path))
            return CachedTree(_TarTree(io.BufferedReader(forward, BLOCK_BYTES), shown))
        return CachedTree(_TarTree(gzip.GzipFile(fileobj=buffered(tree, path)), shown))
    except (*_BROKEN, OSError) as error:
        raise NoLogError(f"{shown} is damaged, cut off, or not an archive: {error}") from error


def with_packed_segments(tree: Tree) -> Tree:
    """Return the tree with `X.gz` shown as `X`, decompressed."""
    return CachedTree(_UnpackedTree(tree))


class _Members:
    """The names in an archive, as folders and files."""

    def __init__(self, paths: Iterable[str], shown: str) -> None:
        self.location = shown
        self._files: dict[str, set[str]] = {}
        self._folders: dict[str, set[str]] = {"": set()}
        for path in paths:
            folder, _, name = path.rpartition("/")
            self._files.setdefault(folder, set()).add(name)
            while folder:
                parent, _, child = folder.rpartition("/")
                self._folders.setdefault(parent, set()).add(child)
                folder = parent

    def files(self, folder: str) -> list[str]:
        return sorted(self._files.get(folder, ()))

    def folders(self, folder: str) -> list[str]:
        return sorted(self._folders.get(folder, ()))


class _TarTree(_Members):
    """A tar archive over a seekable stream."""

    def __init__(self, stream: Any, shown: str) -> None:
        self._stream = stream
        with tarfile.open(fileobj=stream, mode="r:") as tar:
            places = {
                _plain(member.name): (member.offset_data, member.size)
                for member in tar
                if member.isreg() and not member.issparse()
            }
        self._places = places
        super().__init__(places, shown)

    def size(self, path: str) -> int:
        return self._place(path)[1]

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        start, size = self._place(path)
        wanted = max(0, size - position if length is None else min(length, size - position))
        return _read_at(self._stream, start + position, wanted, f"{self.location}/{path}")

    def _place(self, path: str) -> tuple[int, int]:
        if path not in self._places:
            raise FileNotFoundError(f"{self.location}/{path}")
        return self._places[path]


class _ZipTree(_Members):
    """A zip archive over a seekable stream."""

    def __init__(self, stream: Any, shown: str) -> None:
        self._zip = zipfile.ZipFile(stream)
        self._entries = {
            _plain(info.filename): info for info in self._zip.infolist() if not info.is_dir()
        }
        self._open = _OpenFiles(self._begin)
        super().__init__(self._entries, shown)

    def size(self, path: str) -> int:
        if path not in self._entries:
            raise FileNotFoundError(f"{self.location}/{path}")
        return self._entries[path].file_size

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        size = self.size(path)
        wanted = max(0, size - position if length is None else min(length, size - position))
        return _read_at(self._open.get(path), position, wanted, f"{self.location}/{path}")

    def _begin(self, path: str) -> IO[bytes]:
        try:
            return self._zip.open(self._entries[path])
        except (zipfile.BadZipFile, RuntimeError) as error:  # damaged, encrypted, or too new
            raise OSError(f"{self.location}/{path} can't be unpacked: {error}") from error


class _UnpackedTree:
    """A tree that shows `X.gz` as `X`, decompressed."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.location = tree.location
        self._open = _OpenFiles(
            lambda path: gzip.GzipFile(fileobj=buffered(self._tree, path + _PACKED))
        )
        self._sizes: dict[str, int] = {}
        self._packed: set[str] = set()

    def files(self, folder: str) -> list[str]:
        return sorted({name.removesuffix(_PACKED) for name in self._tree.files(folder)})

    def folders(self, folder: str) -> list[str]:
        return self._tree.folders(folder)

    def size(self, path: str) -> int:
        if not self._is_packed(path):
            return self._tree.size(path)
        position = 0
        while path not in self._sizes:
            position += len(self._unpack(path, position, BLOCK_BYTES))
        return self._sizes[path]

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        if not self._is_packed(path):
            return self._tree.read(path, position, length)
        wanted = self.size(path) - position if length is None else length
        return self._unpack(path, position, wanted) if wanted > 0 else b""

    def _unpack(self, path: str, position: int, length: int) -> bytes:
        """Decompress up to `length` bytes. Remembers the file's size when it reaches the end.

        Returns what can be decompressed before damage; the next call raises OSError.
        """
        shown = f"{self.location}/{path}{_PACKED}"
        data, ended = _read_some(self._open.get(path), position, length, shown)
        if ended and (data or not position):
            self._sizes[path] = position + len(data)
        return data

    def _is_packed(self, path: str) -> bool:
        if path not in self._packed:
            folder, _, name = path.rpartition("/")
            names = self._tree.files(folder)
            if name in names or name + _PACKED not in names:
                return False
            self._packed.add(path)
        return True


class _OpenFiles:
    """The streams that were read last, each kept open at its position."""

    def __init__(self, begin: Callable[[str], Any]) -> None:
        self._begin = begin
        self._streams: OrderedDict[str, Any] = OrderedDict()

    def get(self, path: str) -> Any:
        """Return a file's stream."""
        if path not in self._streams:
            self._streams[path] = self._begin(path)
            if len(self._streams) > _OPEN_FILES:
                self._streams.popitem(last=False)[1].close()
        self._streams.move_to_end(path)
        return self._streams[path]


def _read_at(stream: Any, position: int, length: int, shown: str) -> bytes:
    """Read exactly `length` bytes unless the stream ends. Raises as `_read_some`."""
    return _read_some(stream, position, length, shown)[0]


def _read_some(stream: Any, position: int, length: int, shown: str) -> tuple[bytes, bool]:
    """Return up to `length` bytes that can be decompressed, and whether the stream ended.

    Raises OSError if none of them can be decompressed.
    """
    pieces: list[bytes] = []
    try:
        stream.seek(position)
        while length > 0:
            piece = stream.read1(min(length, _PIECE_BYTES))
            if not piece:
                break
            pieces.append(piece)
            length -= len(piece)
    except (*_BROKEN, gzip.BadGzipFile) as error:
        if not pieces:
            raise OSError(f"{shown} can't be unpacked after byte {position}: {error}") from error
        return b"".join(pieces), False
    return b"".join(pieces), length > 0


def _zstd(tree: Tree, path: str) -> IO[bytes]:
    """Decompress Zstandard with pyarrow. Raises NoLogError if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: ICN001, PLC0415 - optional, and slow to import
    except ImportError:
        raise NoLogError(
            f"{tree.location}/{path}: reading .zst needs pyarrow. Install logberg[audit]."
        ) from None
    packed: IO[bytes] = pyarrow.CompressedInputStream(buffered(tree, path), "zstd")
    return packed


def _plain(name: str) -> str:
    """Return a member's path without leading `./` and empty parts."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))
