"""Commits: what makes written files part of a table, once.

Rule: each micro-batch commits a table once, under its number (a Delta *application transaction*). A
commit whose number the table has already does nothing, so a micro-batch that runs again adds
nothing twice. Rows that a commit replaces leave with the same commit; no reader sees a table
between.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.transaction import (
    AddAction,
    RemoveAction,
    Transaction,
    create_table_with_add_actions,
)

from audit.lake.delta import TableOrigin, as_dataset, check, opened
from audit.lake.files import DataFile, write_file
from audit.lake.place import LakePlace

APPLICATION: Final = "logberg-pipeline"
"""The name under which micro-batches are numbered."""
_SETTINGS: Final = {
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": "interval 7 days",
}


def commit(
    place: LakePlace,
    table_path: str,
    schema: pa.Schema,
    files: Sequence[DataFile | None],
    *,
    batch: int,
    replace: pc.Expression | None = None,
) -> bool:
    """Add files to a table, and with them remove the rows for which `replace` is true.

    The first commit creates the table. Files that hold other rows too are written anew without
    those that leave. None among `files` is skipped. Returns False, and does nothing, if the table
    has the commit of this micro-batch or of a later one. Raises LakeError.
    """
    added = [file for file in files if file is not None]
    table = opened(place, table_path)
    if table is None:
        _create(place, table_path, schema, added, batch)
        return True
    with place.failing(table_path, "written"):
        check(place, table_path, table, schema)
        last = table.transaction_version(APPLICATION)
        if last is not None and last >= batch:
            return False
        removed: list[str] = []
        kept: list[DataFile] = []
        if replace is not None:
            removed, kept = _without(place, table_path, table, schema, replace, batch)
        newest_ms = max((file.modified_ms for file in added + kept), default=0)
        table.create_write_transaction(
            [*map(add_action, added + kept), *(remove_action(path, newest_ms) for path in removed)],
            "append",
            Schema.from_arrow(schema),
            commit_properties=_properties(batch),
        )
    return True


def committed_batch(place: LakePlace, table_path: str) -> int | None:
    """Return the number of the last micro-batch that a table holds; None: there is no table."""
    table = opened(place, table_path)
    if table is None:
        return None
    check(place, table_path, table)
    return table.transaction_version(APPLICATION)


def _create(
    place: LakePlace, table_path: str, schema: pa.Schema, added: Sequence[DataFile], batch: int
) -> None:
    with place.failing(table_path, "written"):
        create_table_with_add_actions(
            place.table_url(table_path),
            Schema.from_arrow(schema),
            [add_action(file) for file in added],
            mode="error",
            name=table_path,
            description=msgspec.json.encode(TableOrigin(place.cluster_id)).decode(),
            configuration=_SETTINGS,
            storage_options=place.storage_options() or None,
            commit_properties=_properties(batch),
        )


def _without(
    place: LakePlace,
    table_path: str,
    table: DeltaTable,
    schema: pa.Schema,
    replaced: pc.Expression,
    batch: int,
) -> tuple[list[str], list[DataFile]]:
    """Return the files that hold rows to be replaced, and the new ones with their other rows.

    Files whose statistics exclude such rows are not opened.
    """
    removed: list[str] = []
    stays = ~pc.coalesce(replaced, pa.scalar(value=False))

    def others() -> Iterator[pa.Table]:
        for fragment in as_dataset(place, table_path, table).get_fragments(filter=replaced):
            rows = fragment.to_table(schema=schema)
            rest = rows.filter(stays)
            if rest.num_rows < rows.num_rows:
                removed.append(fragment.path)
                yield rest.cast(schema)

    kept = write_file(place, table_path, others(), f"batch-{batch}-rest")
    return removed, [] if kept is None else [kept]


def _properties(batch: int) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(APPLICATION, batch)])


def add_action(file: DataFile, *, new_rows: bool = True) -> AddAction:
    """Return what makes a file part of a table; `new_rows`: it holds rows that weren't there."""
    return AddAction(file.path, file.size, {}, file.modified_ms, new_rows, file.statistics)


def remove_action(path: str, time_ms: int, *, new_rows: bool = True) -> RemoveAction:
    """Return what takes a file out of a table; its rows leave with it, if `new_rows`."""
    return RemoveAction(path, new_rows, time_ms, partition_values={})
