"""Writes the rows of an audit's table to a file, a folder or a URL, as the rows come.

Rule: no list of all rows is kept. A file has its name only when it is whole. Until then it is
`NAME.part` beside it, and a failure removes that. A URL gets a whole file too: it is written on
this machine first and copied at the end.
"""

import csv
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from audit.places.remote import is_url, without_secrets
from audit.places.remote_writing import RemotePlace
from audit.tables import INTS, AuditTable
from logberg.cli.failure import Failure

Row = tuple[Any, ...]

_CSV: Final = ".csv"
_JSON: Final = ".json"
_ROWS_AT_ONCE: Final = 65_536
_PART: Final = ".part"
_FIRST_FILE: Final = "part-00000.parquet"
_NEEDS_ARROW: Final = "Parquet needs pyarrow: install logberg[audit], or write .csv or .json."


class _Writer(Protocol):
    """Writes rows to one open file."""

    def write(self, rows: Sequence[Row]) -> None:
        """Append rows. Raises OSError."""


def is_folder(out: str) -> bool:
    """Return whether `out` names a folder for Parquet files, by its suffix."""
    return not out.partition("?")[0].endswith((_CSV, _JSON))


def write_rows(shown: AuditTable, rows: Iterable[Row], out: str) -> int:
    """Write a table to `out`, a path or a URL, and return the number of its rows.

    `.csv` and `.json` (one document a line) are files; any other name is a new folder with a
    Parquet file. Raises Failure, and what reading `rows` raises.
    """
    kind = "" if is_folder(out) else Path(out.partition("?")[0]).suffix
    count = 0
    try:
        with (
            _named_when_whole(out, folder=not kind) as path,
            _told(out),
            _WRITERS[kind](path, shown) as writer,
        ):
            for some in _in_pieces(rows):
                writer.write(some)
                count += len(some)
    except _ReadingError as failed:
        raise failed.error from None
    return count


class _ReadingError(Exception):
    """Reading the log failed with an OSError, so the file that is written is not to blame."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def refuse_existing(out: str) -> None:
    """Raise Failure if `out` names a folder that is there, or a URL that can't be used."""
    with _told(out):
        there = RemotePlace(out).is_there() if is_url(out) else Path(out).exists()
    if there and is_folder(out):
        raise Failure(f"{without_secrets(out)} exists already. Name a new folder.")


def _in_pieces(rows: Iterable[Row]) -> Iterator[list[Row]]:
    coming = iter(rows)
    while True:
        try:
            some = list(islice(coming, _ROWS_AT_ONCE))
        except OSError as error:
            raise _ReadingError(error) from error
        if not some:
            return
        yield some


@contextmanager
def _named_when_whole(out: str, *, folder: bool) -> Iterator[Path]:
    """Give the path of a file to write. If the block ends well, the file gets its place."""
    if is_url(out):
        with tempfile.TemporaryDirectory(prefix="logberg-audit-") as scratch:
            path = Path(scratch, _FIRST_FILE)
            yield path
            with _told(out):
                RemotePlace(out).put(path, _FIRST_FILE if folder else "")
        return
    target = Path(out)
    if target.exists() and not target.is_file():  # a pipe or a terminal
        yield target
        return
    part = target.with_name(target.name + _PART)
    try:
        with _told(out):
            if folder:
                part.mkdir(parents=True)
        yield part / _FIRST_FILE if folder else part
        with _told(out):
            part.replace(target)
    except BaseException:
        if folder:
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
        raise


@contextmanager
def _told(out: str) -> Iterator[None]:
    """Turn an error of writing into a Failure that names `out`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        shown = without_secrets(out) if is_url(out) else out
        raise Failure(
            f"{shown} can't be written: {error.strerror or error}. Nothing was left there."
        ) from None


class _CsvFile:
    """Lists are written as numbers with spaces between them; a null is empty."""

    def __init__(self, file: Any, shown: AuditTable) -> None:
        self._writer = csv.writer(file)
        self._writer.writerow([column.name for column in shown.columns])
        self._lists = [i for i, column in enumerate(shown.columns) if column.kind == INTS]

    def write(self, rows: Sequence[Row]) -> None:
        self._writer.writerows(map(self._flat, rows) if self._lists else rows)

    def _flat(self, row: Row) -> Row:
        cells = list(row)
        for i in self._lists:
            if cells[i] is not None:
                cells[i] = " ".join(map(str, cells[i]))
        return tuple(cells)


class _JsonFile:
    """One document a line."""

    def __init__(self, file: Any, shown: AuditTable) -> None:
        self._file = file
        self._names = [column.name for column in shown.columns]

    def write(self, rows: Sequence[Row]) -> None:
        encode = msgspec.json.Encoder().encode
        for row in rows:
            self._file.write(encode(dict(zip(self._names, row, strict=True))) + b"\n")


class _ParquetFile:
    """One row group for each piece."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, rows: Sequence[Row]) -> None:
        import pyarrow as pa  # noqa: PLC0415 - `_parquet` has imported it

        columns = zip(*rows, strict=True)
        schema = self._file.schema
        arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
        self._file.write_table(pa.Table.from_arrays(arrays, schema=schema))


@contextmanager
def _csv(path: Path, shown: AuditTable) -> Iterator[_Writer]:
    with path.open("w", newline="", encoding="utf-8") as file:
        yield _CsvFile(file, shown)


@contextmanager
def _json(path: Path, shown: AuditTable) -> Iterator[_Writer]:
    with path.open("wb") as file:
        yield _JsonFile(file, shown)


@contextmanager
def _parquet(path: Path, shown: AuditTable) -> Iterator[_Writer]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise Failure(_NEEDS_ARROW) from None
    kinds = {"text": pa.string(), "int": pa.int64(), INTS: pa.list_(pa.int64()), "bool": pa.bool_()}
    schema = pa.schema([(column.name, kinds[column.kind]) for column in shown.columns])
    with parquet.ParquetWriter(path, schema) as file:
        yield _ParquetFile(file)


_WRITERS: Final[dict[str, Callable[[Path, AuditTable], AbstractContextManager[_Writer]]]] = {
    _CSV: _csv,
    _JSON: _json,
    "": _parquet,
}
