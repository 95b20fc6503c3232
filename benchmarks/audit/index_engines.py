"""Compares SQLite and DuckDB as the store of the audit's index, on the same columns (ADR 0068).

    python -m benchmarks.audit.index_engines --records 1000000

Both get the rows of made-up records and versions in blocks of 20,000, as the index writes them, and
then answer the console's questions. DuckDB takes each block as Arrow. Times are in seconds.
"""

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

BLOCK = 20_000
THINGS = 20_000
CAUSES = 4_000

RECORD = "record(offset_ BIGINT, type INTEGER, subject INTEGER, cause INTEGER)"
VERSION = "version(id BIGINT, thing INTEGER, at_ BIGINT, value BLOB)"

ROUNDS = 5


def blocks(records: int) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield the rows of both tables, block by block."""
    dice = Random(7)
    for start in range(0, records, BLOCK):
        offsets = range(start, min(records, start + BLOCK))
        things = [dice.randrange(THINGS) for _ in offsets]
        yield (
            [(o, t % 31, t, dice.randrange(CAUSES)) for o, t in zip(offsets, things, strict=True)],
            [(o, t, o, dice.randbytes(70)) for o, t in zip(offsets, things, strict=True)],
        )


def questions(records: int) -> dict[str, str]:
    """Return the SQL of what the console asks most, by name."""
    at, later = records // 2, records * 3 // 4
    few = ",".join(map(str, range(40)))
    return {
        "search, rare": f"SELECT offset_ FROM record WHERE cause IN ({few})"
        " ORDER BY offset_ DESC LIMIT 101",
        "search, nothing fits": f"SELECT offset_ FROM record WHERE cause IN ({few})"
        " AND type = 99 ORDER BY offset_ DESC LIMIT 101",
        "state, one page": "SELECT t.thing, (SELECT value FROM version v WHERE v.thing = t.thing"
        f" AND at_ <= {at} ORDER BY at_ DESC LIMIT 1) FROM"
        " (SELECT DISTINCT thing FROM version WHERE thing < 100) t",
        "history of one thing": "SELECT at_, value FROM version WHERE thing = 77 ORDER BY at_",
        "diff, a quarter of the log": "SELECT thing, min(id), max(id) FROM version"
        f" WHERE id > {at} AND id <= {later} GROUP BY thing",
    }


def timed(work: Callable[[], Any]) -> float:
    """Return the best of some rounds, in seconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best


def sqlite(folder: Path, records: int) -> dict[str, float]:
    """Measure SQLite."""
    path = folder / "index.sqlite"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")
    db.execute(f"CREATE TABLE {RECORD.replace('offset_ BIGINT', 'offset_ INTEGER PRIMARY KEY')}")
    db.execute(f"CREATE TABLE {VERSION.replace('id BIGINT', 'id INTEGER PRIMARY KEY')}")
    spent = 0.0
    for of_record, of_version in blocks(records):
        begun = time.perf_counter()
        db.execute("BEGIN")
        db.executemany("INSERT INTO record VALUES (?, ?, ?, ?)", of_record)
        db.executemany("INSERT INTO version VALUES (?, ?, ?, ?)", of_version)
        db.commit()
        spent += time.perf_counter() - begun
    begun = time.perf_counter()
    db.execute("CREATE INDEX by_cause ON record(cause)")
    db.execute("CREATE INDEX by_subject ON record(subject)")
    db.execute("CREATE INDEX by_thing ON version(thing, at_)")
    db.commit()
    found = {"write": spent, "indexes": time.perf_counter() - begun}
    for name, sql in questions(records).items():
        found[name] = timed(lambda sql=sql: db.execute(sql).fetchall())  # type: ignore[misc]
    db.close()
    found["MB"] = path.stat().st_size / 1e6
    return found


def duck(folder: Path, records: int) -> dict[str, float]:
    """Measure DuckDB."""
    path = folder / "index.duckdb"
    db = duckdb.connect(str(path))
    db.execute(f"CREATE TABLE {RECORD}")
    db.execute(f"CREATE TABLE {VERSION}")
    spent = 0.0
    for of_record, of_version in blocks(records):
        begun = time.perf_counter()
        first = pa.table(list(zip(*of_record, strict=True)), names=["a", "b", "c", "d"])
        second = pa.table(list(zip(*of_version, strict=True)), names=["a", "b", "c", "d"])
        db.register("first_rows", first)
        db.register("second_rows", second)
        db.execute("INSERT INTO record SELECT * FROM first_rows")
        db.execute("INSERT INTO version SELECT * FROM second_rows")
        spent += time.perf_counter() - begun
    begun = time.perf_counter()
    db.execute("CHECKPOINT")
    found = {"write": spent, "indexes": time.perf_counter() - begun}
    for name, sql in questions(records).items():
        found[name] = timed(lambda sql=sql: db.execute(sql).fetchall())  # type: ignore[misc]
    db.close()
    found["MB"] = path.stat().st_size / 1e6
    return found


def main() -> None:
    """Measure both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory() as temporary:
        one, other = sqlite(Path(temporary), records), duck(Path(temporary), records)
    print(f"{'':28}{'SQLite':>10}{'DuckDB':>10}")
    for name in one:
        print(f"{name:28}{one[name]:10.4f}{other[name]:10.4f}")


if __name__ == "__main__":
    main()
