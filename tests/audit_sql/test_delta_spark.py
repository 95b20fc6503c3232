"""Spark reads the kept tables too, by delta-spark: equal rows, equal types, nothing skipped.

Rule: delta-spark 4.4 refuses PySpark 4.3, so it has an environment of its own, with PySpark 4.2.
The first run makes it in the user's cache folder. It runs only with LOGBERG_SERVERS=1.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")

import pyarrow as pa
import pyarrow.compute as pc

from audit.generated import batches as generated
from audit.lake.compaction import compact
from audit.lake.place import LakePlace
from audit.lake.reading import kept_datasets
from benchmarks.peers.tools import cache, jars
from tests.audit_sql.keeping import keep
from tests.coordination.servers.tier import skip_unless_run
from tests.unit.audit.lake.lakes import GOLD, INTERVALS, gold_row, interval_row, put

PACKAGES = ("pyspark==4.2.0", "delta-spark==4.4.0")
READER = Path(__file__).with_name("delta_reader.py")
SPARK_TYPES = {
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.list_(pa.field("element", pa.int64())): "array<bigint>",
}


def python() -> Path:
    """The interpreter of the environment, made if it is not there."""
    folder = cache() / "-".join(PACKAGES).replace("==", "-")
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(pip, check=True, timeout=900)
        (folder / "ready").touch()
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> LakePlace:
    """Kept tables of a made-up history, and what replacing and compaction leave behind."""
    skip_unless_run()
    place = keep(list(generated(1, records=900)), str(tmp_path_factory.mktemp("kept")))
    for batch in range(1, 4):
        put(place, GOLD, [gold_row(f"t-{batch}", "2030-01-01", batch)], batch)
    put(place, GOLD, [gold_row("t-9", "2030-01-01")], 4, pc.field("key").isin(["t-1", "t-2"]))
    put(place, INTERVALS, [interval_row(n, until=None) for n in range(3)], 1)
    assert compact(place, GOLD, few_files=0)
    return place


@pytest.mark.timeout(1_200)
def test_delta_spark_reads_the_same_tables(place: LakePlace) -> None:
    kept = kept_datasets(place)
    command = [str(python()), str(READER), str(jars("delta"))]
    done = subprocess.run(
        [*command, *(f"{place.where}/{path}" for path in kept)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(found) == len(kept)
    assert sum(len(one["rows"]) for one in found) > 2_000
    for path, said in zip(kept, found, strict=True):
        table = kept[path].to_table()
        types = {field.name: SPARK_TYPES[field.type] for field in table.schema}
        assert said["types"] == types, path
        assert sorted(said["rows"], key=repr) == sorted(_rows(table), key=repr), path
        for column, count in said["filtered"].items():
            values = table.column(column).to_pylist()
            assert count in {values.count(value) for value in set(values)}, (path, column)


def _rows(table: Any) -> list[list[Any]]:
    """The rows as the reader prints them."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.int64())  # noqa: PLW2901 - the same column, as a number
        elif pa.types.is_date(field.type):
            column = column.cast(pa.string())  # noqa: PLW2901
        values = column.to_pylist()
        if pa.types.is_binary(field.type):
            values = [None if value is None else value.hex().upper() for value in values]
        columns.append(values)
    return [list(row) for row in zip(*columns, strict=True)]
