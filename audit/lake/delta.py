"""One Delta table as it is now: opened, checked, and as an Arrow dataset.

Rule: a table says in its own metadata whose cluster it describes and which layout it has. One of
another cluster or layout, and one that the pipeline did not write, is refused by name before
anything is read from it or written to it.
"""

from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from audit.lake.place import FORMAT, LakeError, LakePlace


class TableOrigin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a table says about itself in its metadata, as the JSON text of its description."""

    cluster: str
    """The id of the cluster that it describes."""
    layout: int = FORMAT


def opened(place: LakePlace, table_path: str) -> DeltaTable | None:
    """Return a table as it is now; None: there is none. Raises LakeError."""
    with place.failing(table_path, "opened"):
        try:
            return DeltaTable(
                place.table_url(table_path), storage_options=place.storage_options() or None
            )
        except TableNotFoundError:
            return None


def check(
    place: LakePlace, table_path: str, table: DeltaTable, schema: pa.Schema | None = None
) -> None:
    """Raise LakeError if a table is of another cluster or layout, or has other columns."""
    shown = place.shown_table(table_path)
    try:
        origin = msgspec.json.decode(table.metadata().description or "", type=TableOrigin)
    except msgspec.MsgspecError:
        raise LakeError(
            f"{shown} is a table that the pipeline did not write. Name another folder."
        ) from None
    if origin.layout != FORMAT:
        raise LakeError(
            f"{shown} has layout {origin.layout}, and this release knows layout {FORMAT}. "
            "Use the release that wrote it, or give the pipeline an empty folder."
        )
    if place.cluster_id and origin.cluster != place.cluster_id:
        raise LakeError(
            f"{shown} is of the cluster {origin.cluster}, and this log is of the cluster "
            f"{place.cluster_id}. Give each cluster a folder of its own."
        )
    if schema is not None:
        _check_columns(shown, table, schema)


def _check_columns(shown: str, table: DeltaTable, schema: pa.Schema) -> None:
    there = pa.schema(table.schema().to_arrow())
    if there.equals(schema):
        return
    odd = sorted({field.name for field in {*there} ^ {*schema}})
    raise LakeError(
        f"{shown} was written with other columns ({', '.join(odd)}). Use the release that wrote "
        "it, or give the pipeline an empty folder."
    )


def as_dataset(place: LakePlace, table_path: str, table: DeltaTable) -> Any:
    """Return an open table as a dataset whose files are skipped by their ranges.

    delta-rs makes such a dataset too, but one that skips files whose range is not known.
    """
    from pyarrow.dataset import FileSystemDataset  # noqa: PLC0415 - slow to import

    with place.failing(table_path, "read"):
        found = table.to_pyarrow_dataset()
        known = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        ranges = {action["path"]: _range(action, found.schema) for action in known}
        fragments = [
            found.format.make_fragment(
                fragment.path,
                filesystem=found.filesystem,
                partition_expression=ranges[fragment.path],
            )
            for fragment in found.get_fragments()
        ]
        return FileSystemDataset(fragments, found.schema, found.format, found.filesystem)


def _range(action: dict[str, Any], schema: pa.Schema) -> pc.Expression:
    """Return what is true of each row of a file."""
    holds = pc.scalar(value=True)
    for field in schema:
        column = pc.field(field.name)
        nulls = action.get(f"null_count.{field.name}")
        low, high = action.get(f"min.{field.name}"), action.get(f"max.{field.name}")
        if nulls == action["num_records"]:
            holds &= column.is_null()
        elif low is not None and high is not None:
            for bound in (
                column >= pa.scalar(low, field.type),
                column <= pa.scalar(high, field.type),
            ):
                holds &= bound if nulls == 0 else (bound | column.is_null())
    return holds
