"""Reads kept tables back as the rows of the jobs that they keep."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from audit.embedded import run_job as plain_job
from audit.lake.place import LakePlace
from audit.lake.reading import dataset
from audit.places.replicas import open_replicas
from audit.tables import BRONZE, BY_NAME, FINDINGS, KEPT, AuditTable, kept_form

JOBS = {path: table for path, table in KEPT.items() if table.name in BY_NAME}
"""The kept tables that are also jobs."""


def kept_rows(out: Path | str, path: str) -> list[tuple[Any, ...]]:
    """Return a kept table's rows as its job gives them, ordered."""
    table = KEPT[path]
    found = dataset(LakePlace(str(out)), path).to_table()
    columns = [_values(found.column(kept.name), kept.kind) for kept in kept_form(table).columns]
    return sorted(zip(*columns, strict=True), key=lambda row: row[: table.key])


def _values(column: pa.ChunkedArray, kind: str) -> list[Any]:
    if kind == "time":
        micros = column.cast(pa.int64()).to_pylist()
        return [None if value is None else value // 1_000 for value in micros]
    if kind == "date":
        return [value.isoformat() for value in column.to_pylist()]
    return [tuple(v) if isinstance(v, list) else v for v in column.to_pylist()]


def check(log: Path, out: Path | str) -> None:
    """Each table equals the plain answer for the whole log; nothing is there twice."""
    replicas = open_replicas(str(log))
    for path, table in JOBS.items():
        wanted = plain_job(table.name, replicas)
        found = kept_rows(out, path)
        assert found == wanted, difference(table, found, wanted)
    reader = replicas[0].reader()
    offsets = dataset(LakePlace(str(out)), BRONZE.name).to_table(columns=["offset"])
    found_offsets = sorted(offsets.column("offset").to_pylist())
    assert found_offsets == list(range(reader.log_start, reader.log_end))


def difference(table: AuditTable, found: list[Any], wanted: list[Any]) -> str:
    """Return the first rows that differ."""
    more = sorted(set(found) - set(wanted), key=str)[:3]
    less = sorted(set(wanted) - set(found), key=str)[:3]
    return f"{table.name}: {len(found)} rows for {len(wanted)}; found {more}, wanted {less}"


def findings(out: Path | str) -> list[tuple[int, str, str, bool]]:
    """Return offset, id and sentence of each kept finding, and whether it is open."""
    columns = ["offset", "id", "sentence", "open"]
    found = dataset(LakePlace(str(out)), FINDINGS.name).to_table(columns=columns)
    return sorted(tuple(row.values()) for row in found.to_pylist())
