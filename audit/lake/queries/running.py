"""Runs SQL over kept tables, in DuckDB, read-only.

Rule: the kept tables are views, named as the last word of their path (`gold/changes` is `changes`).
DuckDB reads them as Arrow datasets, so it fetches no extension and skips files as any reader does.
A query sees these views only: no file of this machine, no network, no variable of this program. A
table of which a query reads nothing is not opened.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from audit.lake.place import LakePlace
from audit.lake.queries.catalogue import VIEWS, ReadyQuery
from audit.lake.reading import kept_datasets

_TYPE = re.compile(r"\b(\w+) (?:Error|Exception): ")


class QueryError(Exception):
    """A query can't be run. The message says why."""


class QueryAnswer(NamedTuple):
    """The columns and rows of a query."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


def run_query(place: LakePlace, query: ReadyQuery, given: Mapping[str, str]) -> QueryAnswer:
    """Run a query of the catalogue; `given` replaces defaults. Raises QueryError, LakeError."""
    known = {parameter.name: parameter.default for parameter in query.parameters}
    odd = sorted(given.keys() - known.keys())
    if odd:
        takes = ", ".join(known) or "no parameter"
        raise QueryError(f"{query.name} has no parameter {odd[0]}; it takes {takes}")
    return run_sql(place, query.sql, {**known, **given})


def run_sql(place: LakePlace, sql: str, given: Mapping[str, str] | None = None) -> QueryAnswer:
    """Run any SQL over the kept tables. Raises QueryError, LakeError."""
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise QueryError(f"queries need DuckDB: install logberg[audit] ({error.name})") from None
    there = {name: source for name, source in _sources(place).items() if name in sql}
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
        },
    )
    try:
        connection.execute("SET TimeZone = 'UTC'")
        for name, source in there.items():
            connection.register(name, source)
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        statements = connection.extract_statements(sql)
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            raise QueryError("a query is one SELECT")
        answer = connection.sql(sql, params=dict(given or {})).to_arrow_table()
    except duckdb.Error as error:
        raise QueryError(_said(place, str(error))) from None
    finally:
        connection.close()
    columns = [column.to_pylist() for column in answer.columns]
    return QueryAnswer(answer.column_names, list(zip(*columns, strict=True)))


def _sources(place: LakePlace) -> dict[str, Any]:
    kept = kept_datasets(place)
    return {name: kept[path] for name, path in VIEWS.items() if path in kept}


def _said(place: LakePlace, error: str) -> str:
    """Return the first line of DuckDB's error, or which kept table is missing."""
    for name, path in VIEWS.items():
        if re.search(rf"Table with name {name} does not exist", error):
            return f"the query reads {path}, and {place.shown} doesn't hold that table"
    return _TYPE.sub("", error.strip().partition("\n")[0], count=1)
