"""Object storage by URL, as a tree of files that are read in ranges.

Rule: only requested ranges are fetched, never a whole object to look at its beginning. pyarrow,
which has clients of its own, reads `s3://` and the other schemes that it knows; fsspec reads the
rest. Neither is imported before a URL is opened. A URL never appears in a message with its secrets.
"""

import re
from collections import OrderedDict
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, urlsplit

from audit.places.folder import NoLogError

_OPEN_FILES: Final = 16
_CONNECT_S: Final = 5.0
_REQUEST_S: Final = 60.0
_ATTEMPTS: Final = 3
_RETRY_S: Final = 20
_S3_OPTIONS: Final = ("endpoint_override", "scheme", "region", "access_key", "secret_key")
_USER: Final = re.compile(r"://[^/@\s]+@")
_OPTIONS: Final = re.compile(r"""(://[^\s?'"]*)\?(?:(?!::)[^\s'"])*""")


class Tree(Protocol):
    """Folders and files, read-only. Paths are relative and POSIX; the empty path is the top."""

    @property
    def location(self) -> str:
        """The path or URL of the top, without secrets, for messages."""

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, sorted; empty if there is no such folder."""

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, sorted; empty if there is no such folder."""

    def size(self, path: str) -> int:
        """Return the length of a file in bytes. Raises FileNotFoundError."""

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `position`. Raises FileNotFoundError."""


def is_url(where: str) -> bool:
    """Return whether this is a URL rather than a path."""
    return "://" in where


def without_secrets(url: str) -> str:
    """Return a URL for messages: without user, keys and options."""
    shown = _OPTIONS.sub(r"\1", _USER.sub("://", url))
    return shown.rstrip("/") if shown.count("/") > 2 else shown


def open_tree(url: str) -> Tree:
    """Open the place that a URL names, without looking into it yet. Raises NoLogError."""
    shown = without_secrets(url)
    scheme = urlsplit(url).scheme.lower()
    try:
        if scheme == "s3":
            return _ArrowTree(*s3_system(url), shown)
        if scheme in ("gs", "gcs", "abfs", "abfss", "hdfs"):
            return _ArrowTree(*_by_arrow(url), shown)
        return _FsspecTree(*_by_fsspec(url), shown)
    except ImportError as error:
        raise NoLogError(
            f"{shown}: reading from object storage needs pyarrow and fsspec. Install "
            f"logberg[audit]. ({error})"
        ) from error
    except (OSError, ValueError) as error:
        raise NoLogError(f"{shown} can't be opened: {in_short(error)}") from error


def s3_system(url: str) -> tuple[Any, str]:
    """Return pyarrow's file system for S3, with time limits set, and the path in it.

    Raises OSError, and ValueError for a URL without a bucket or with an unknown option.
    """
    from pyarrow import fs  # noqa: PLC0415 - optional, and slow to import

    parts = urlsplit(url)
    named: dict[str, Any] = s3_options(url)
    if named.pop("anonymous", ""):
        named["anonymous"] = True
    if "region" not in named and "endpoint_override" not in named:
        named["region"] = fs.resolve_s3_region(parts.hostname)
    system = fs.S3FileSystem(
        connect_timeout=_CONNECT_S,
        request_timeout=_REQUEST_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        **named,
    )
    bucket = parts.netloc.rpartition("@")[2]
    return system, f"{bucket}/{parts.path.strip('/')}".rstrip("/")


def s3_options(url: str) -> dict[str, str]:
    """Return what a URL of S3 says beside its path; `anonymous` is only there if it is true.

    Raises ValueError for a URL without a bucket or with an unknown option.
    """
    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError("no bucket is named; write s3://BUCKET/PATH")
    options = dict(parse_qsl(parts.query))
    named: dict[str, str] = {}
    named |= {name: options.pop(name) for name in _S3_OPTIONS if name in options}
    if options.pop("anonymous", "").lower() in ("1", "true", "yes"):
        named["anonymous"] = "true"
    if options:
        raise ValueError(
            f"the option {min(options)!r} is unknown; use endpoint_override, scheme, region, "
            "anonymous, access_key or secret_key"
        )
    if parts.username:
        named["access_key"], named["secret_key"] = parts.username, parts.password or ""
    return named


def _by_arrow(url: str) -> tuple[Any, str]:
    from pyarrow import fs  # noqa: PLC0415 - optional, and slow to import

    if url.startswith(("gs://", "gcs://")) and "retry_limit_seconds" not in url:
        url += f"{'&' if '?' in url else '?'}retry_limit_seconds={_RETRY_S}"
    system, path = fs.FileSystem.from_uri(url)
    return system, path.rstrip("/")


def _by_fsspec(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs  # noqa: PLC0415 - optional

    system, path = url_to_fs(url)
    return system, path.rstrip("/")


class _ArrowTree:
    """A tree over a `pyarrow.fs.FileSystem`. It keeps the files open that were used last."""

    def __init__(self, system: Any, root: str, shown: str) -> None:
        self._system = system
        self._root = root
        self.location = shown
        self._open: OrderedDict[str, Any] = OrderedDict()

    def files(self, folder: str) -> list[str]:
        return self._names(folder, is_file=True)

    def folders(self, folder: str) -> list[str]:
        return self._names(folder, is_file=False)

    def _names(self, folder: str, *, is_file: bool) -> list[str]:
        from pyarrow import fs  # noqa: PLC0415 - the constructor's caller has imported it

        wanted = fs.FileType.File if is_file else fs.FileType.Directory
        try:
            found = self._system.get_file_info(fs.FileSelector(self._path(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _failed(self.location, folder, error) from error
        return sorted(info.base_name for info in found if info.type == wanted)

    def size(self, path: str) -> int:
        return int(self._file(path).size())

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        file = self._file(path)
        size = file.size()
        end = size if length is None else min(size, position + length)
        if end <= position:
            return b""
        try:
            return bytes(file.read_at(end - position, position))
        except OSError as error:
            raise _failed(self.location, path, error) from error

    def _file(self, path: str) -> Any:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        try:
            file = self._open[path] = self._system.open_input_file(self._path(path))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _failed(self.location, path, error) from error
        if len(self._open) > _OPEN_FILES:
            self._open.popitem(last=False)[1].close()
        return file

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


class _FsspecTree:
    """A tree over an fsspec file system. Every error that it raises becomes an OSError."""

    def __init__(self, system: Any, root: str, shown: str) -> None:
        self._system = system
        self._root = root
        self.location = shown
        self._sizes: dict[str, int] = {}

    def files(self, folder: str) -> list[str]:
        return [name for name, kind in self._entries(folder) if kind != "directory"]

    def folders(self, folder: str) -> list[str]:
        return [name for name, kind in self._entries(folder) if kind == "directory"]

    def _entries(self, folder: str) -> list[tuple[str, str]]:
        path = self._path(folder)
        try:
            found = self._system.ls(path, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except Exception as error:
            raise _failed(self.location, folder, error) from error
        names = ((entry["name"].rstrip("/").rpartition("/")[2], entry["type"]) for entry in found)
        # Listing a file returns the file itself.
        return sorted((name, kind) for name, kind in names if name)

    def size(self, path: str) -> int:
        if path not in self._sizes:
            try:
                self._sizes[path] = int(self._system.info(self._path(path))["size"])
            except FileNotFoundError:
                raise
            except Exception as error:
                raise _failed(self.location, path, error) from error
        return self._sizes[path]

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        size = self.size(path)
        end = size if length is None else min(size, position + length)
        if end <= position:
            return b""
        try:
            data = self._system.cat_file(self._path(path), start=position, end=end)
        except FileNotFoundError:
            raise
        except Exception as error:
            raise _failed(self.location, path, error) from error
        return bytes(data)

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


def _failed(location: str, path: str, error: Exception) -> OSError:
    shown = f"{location}/{path}" if path else location
    return OSError(f"{shown} can't be read: {in_short(error)}")


def in_short(error: Exception) -> str:
    """Return a library's error as one line, with URLs but without their secrets."""
    said = " ".join(str(error).split())[:400] or type(error).__name__
    return _OPTIONS.sub(r"\1", _USER.sub("://", said))
