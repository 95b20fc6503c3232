"""Puts whole files into object storage, for tables that the audit writes.

Rule: only `s3://` is written to, with the same options as for reading (`audit.places.remote`). An
object appears when all of it is there.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from audit.places.remote import in_short, is_url, s3_system, without_secrets

_PIECE_BYTES: Final = 8 * 1024 * 1024
S3: Final = "s3://"


def below(place: str, name: str) -> str:
    """Return the path or URL of a name in a place; a URL keeps its options."""
    head, mark, options = place.partition("?") if is_url(place) else (place, "", "")
    return f"{head.rstrip('/')}/{name}{mark}{options}"


class RemotePlace:
    """A name in object storage. Raises OSError if it can't be used; the message says why."""

    def __init__(self, url: str) -> None:
        self._shown = without_secrets(url)
        self._system: Any
        try:
            self._system, self._path = s3_system(url)
        except ImportError as error:
            message = f"object storage needs pyarrow. Install logberg[audit]. ({error})"
            raise OSError(message) from error
        except (OSError, ValueError) as error:
            raise OSError(in_short(error)) from error
        if "/" not in self._path:
            raise OSError("a bucket is named, but no name in it. Write s3://BUCKET/NAME")

    def is_there(self) -> bool:
        """Return whether there is an object of this name, or one below it."""
        from pyarrow import fs  # noqa: PLC0415 - the constructor has imported it

        try:
            return bool(self._system.get_file_info(self._path).type != fs.FileType.NotFound)
        except OSError as error:
            raise OSError(in_short(error)) from error

    def put(self, file: Path, name: str = "") -> None:
        """Copy a file of this machine to this name, or to `name` below it."""
        path = f"{self._path}/{name}" if name else self._path
        try:
            with file.open("rb") as source, self._system.open_output_stream(path) as target:
                while piece := source.read(_PIECE_BYTES):
                    target.write(piece)
        except OSError as error:
            with suppress(OSError):  # closing the stream may have kept a part of the file
                self._system.delete_file(path)
            raise OSError(in_short(error)) from error

    def writer(self, name: str) -> "ObjectWriter":
        """Begin an object below this name. Raises OSError."""
        return ObjectWriter(self._system, f"{self._path}/{name}", self._failed)

    def rename(self, name: str, new: str) -> None:
        """Give an object below this name another name; it appears there at once, as a whole.

        The storage copies it, up to 5 GB. Raises OSError.
        """
        old = f"{self._path}/{name}"
        try:
            self._system.copy_file(old, f"{self._path}/{new}")
        except OSError as error:
            raise self._failed(error) from error
        with suppress(OSError):  # a copy that stays is no harm
            self._system.delete_file(old)

    def names(self) -> list[str]:
        """Return the names of the objects below this name, sorted."""
        from pyarrow import fs  # noqa: PLC0415 - the constructor has imported it

        try:
            found = self._system.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        except OSError as error:
            raise self._failed(error) from error
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects below this name. One that is gone already is no error."""
        for name in names:
            with suppress(FileNotFoundError):
                self._system.delete_file(f"{self._path}/{name}")

    def write_table(self, name: str, schema: Any, batches: Iterable[Any]) -> int:
        """Write record batches as one Parquet object below this name; return the rows' number."""
        from pyarrow import parquet  # noqa: PLC0415 - the constructor has imported pyarrow

        path, rows = f"{self._path}/{name}", 0
        try:
            with parquet.ParquetWriter(path, schema, filesystem=self._system) as writer:
                for batch in batches:
                    writer.write_batch(batch)
                    rows += batch.num_rows
        except OSError as error:
            with suppress(OSError):
                self._system.delete_file(path)
            raise self._failed(error) from error
        return rows

    def _failed(self, error: OSError) -> OSError:
        return OSError(f"{self._shown} can't be written: {in_short(error)}")


class ObjectWriter:
    """An object that is written piece by piece. It appears at `close`; `give_up` removes it."""

    def __init__(self, system: Any, path: str, failed: Callable[[OSError], OSError]) -> None:
        self._system = system
        self._path = path
        self._failed = failed
        try:
            self._stream = system.open_output_stream(path)
        except OSError as error:
            raise failed(error) from error

    def write(self, data: bytes) -> None:
        """Append bytes. Raises OSError."""
        try:
            self._stream.write(data)
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """End the object. Raises OSError."""
        try:
            self._stream.close()
        except OSError as error:
            raise self._failed(error) from error

    def give_up(self) -> None:
        """End the stream, and remove what it may have kept."""
        with suppress(OSError):
            self._stream.close()
        with suppress(OSError):
            self._system.delete_file(self._path)
