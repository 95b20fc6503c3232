"""Files of a kept table: written by any process, seen by nobody until they are committed.

Rule: a file gets a name that no other file ever has. So a task that runs again never writes into a
file that readers may have open; what it wrote before is left for `compaction.vacuum`. If writing
fails, for example on a full disk, the file is removed, and nothing of it was visible.
"""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from audit.lake.place import LakePlace
from audit.lake.statistics import statistics_of
from audit.places.remote import is_url

_GROUP_ROWS: Final = 131_072
"""Rows of a row group. Readers skip groups too."""


class DataFile(NamedTuple):
    """A file that is written and not yet committed. It can be sent to the process that commits."""

    path: str
    """Below the table's folder."""
    size: int
    """In bytes."""
    rows: int
    modified_ms: int
    """When the store says that it was written."""
    statistics: str
    """Least and greatest values, as JSON (`statistics_of`)."""


def write_file(
    place: LakePlace,
    table_path: str,
    rows: pa.Table | Iterator[pa.RecordBatch | pa.Table],
    name: str,
) -> DataFile | None:
    """Write rows in their kept form (`to_kept`) as one Parquet file of a table.

    `name` is for people who look into the folder, such as `batch-7-part-0`. Returns None, and
    writes nothing, if there are no rows. Raises LakeError, and what `rows` raises.
    """
    batches = iter((rows,)) if isinstance(rows, pa.Table) else iter(rows)
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return None
    path = f"{name}-{secrets.token_hex(8)}.parquet"
    system, root = place.files()
    full = f"{root}/{table_path}/{path}"
    _make_folder(place, system, f"{root}/{table_path}", table_path)
    try:
        footer = _write(place, table_path, system, full, first, batches)
        with place.failing(table_path, "written"):
            info = system.get_file_info(full)
    except BaseException:
        with suppress(Exception):
            system.delete_file(full)
        raise
    modified_ms = info.mtime_ns // 1_000_000
    return DataFile(path, info.size, footer.num_rows, modified_ms, statistics_of(footer))


def _write(
    place: LakePlace,
    table_path: str,
    system: Any,
    full: str,
    first: pa.RecordBatch | pa.Table,
    batches: Iterator[pa.RecordBatch | pa.Table],
) -> Any:
    from pyarrow import parquet  # noqa: PLC0415 - slow to import

    footers: list[Any] = []
    with place.failing(table_path, "written"):
        sink = system.open_output_stream(full)
    writer: Any = None
    batch: pa.RecordBatch | pa.Table | None = first
    try:
        with place.failing(table_path, "written"):
            writer = parquet.ParquetWriter(
                sink,
                first.schema,
                compression="zstd",
                write_batch_size=_GROUP_ROWS,
                metadata_collector=footers,
            )
        while batch is not None:
            with place.failing(table_path, "written"):
                table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
                writer.write_table(table, row_group_size=_GROUP_ROWS)
            batch = next(batches, None)
        with place.failing(table_path, "written"):
            writer.close()
            sink.close()
    except BaseException:
        if writer is not None:
            # Its destructor would close it again, and complain on stderr that it can't.
            writer.is_open = False
        with suppress(Exception):
            sink.close()
        raise
    return footers[0]


def _make_folder(place: LakePlace, system: Any, folder: str, table_path: str) -> None:
    """Make a table's folder. On this machine only its owner may look inside, as with logs."""
    with place.failing(table_path, "written"):
        if is_url(place.where):
            return  # Object storage has no folders.
        Path(place.where).mkdir(mode=0o700, parents=True, exist_ok=True)
        system.create_dir(folder)
