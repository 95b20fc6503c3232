"""Compaction: many small files of a table become few large ones, and old ones are removed.

Rule: a compaction changes no row. Its commit says so (no data change), and readers of an older
version keep their files until the retention is over. Files are merged in the order in which they
were written, so those of a log still exclude each other by offset. What a killed task left behind,
which no commit ever named, goes with the old files.
"""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, Schema

from audit.lake.commit import add_action, remove_action
from audit.lake.delta import as_dataset, check, opened
from audit.lake.files import write_file
from audit.lake.place import LakePlace

TARGET_BYTES: Final = 64 * 1024 * 1024
SMALL_BYTES: Final = 1024 * 1024
FEW_FILES: Final = 8
"""So many small files may wait for the next compaction."""
RETENTION_HOURS: Final = 24


def compact(
    place: LakePlace, table_path: str, *, few_files: int = FEW_FILES, target: int = TARGET_BYTES
) -> bool:
    """Merge a table's files if more than `few_files` of them are below 1 MB.

    The new files have about `target` bytes, the last one fewer. Returns whether files were merged.
    Raises LakeError.
    """
    table = opened(place, table_path)
    if table is None:
        return False
    check(place, table_path, table)
    with place.failing(table_path, "compacted"):
        found = pa.table(table.get_add_actions()).to_pylist()
        if sum(file["size_bytes"] < SMALL_BYTES for file in found) <= few_files:
            return False
        small = [file for file in found if file["size_bytes"] < target]
        small.sort(key=lambda file: (file["modification_time"], file["path"]))
        _merge(place, table_path, table, _groups(small, target))
    return True


def vacuum(place: LakePlace, table_path: str, *, retention_hours: int = RETENTION_HOURS) -> int:
    """Remove files that left a table so long ago, or were never part of it; return how many.

    Raises LakeError.
    """
    table = opened(place, table_path)
    if table is None:
        return 0
    check(place, table_path, table)
    with place.failing(table_path, "cleaned"):
        gone = table.vacuum(
            retention_hours, dry_run=False, enforce_retention_duration=False, full=True
        )
    return len(gone)


def _groups(files: list[dict[str, Any]], target: int) -> Iterator[list[str]]:
    """Yield the paths of files that become one."""
    group: list[str] = []
    size = 0
    for file in files:
        group.append(file["path"])
        size += file["size_bytes"]
        if size >= target:
            yield group
            group, size = [], 0
    if len(group) > 1:
        yield group


def _merge(
    place: LakePlace, table_path: str, table: DeltaTable, groups: Iterator[list[str]]
) -> None:
    source = as_dataset(place, table_path, table)
    fragments = {fragment.path: fragment for fragment in source.get_fragments()}
    actions: list[Any] = []
    for paths in groups:
        rows = (
            batch.cast(source.schema)
            for path in paths
            for batch in fragments[path].to_batches(schema=source.schema)
        )
        file = write_file(place, table_path, rows, "merged")
        if file is None:
            continue
        actions.append(add_action(file, new_rows=False))
        actions += [remove_action(path, file.modified_ms, new_rows=False) for path in paths]
    if actions:
        table.create_write_transaction(actions, "append", Schema.from_arrow(source.schema))
