"""The made parts of docs/audit/tables.md and queries.md: tables column by column, ready queries."""

import audit.tables as tables
from audit.lake.queries.catalogue import SUBJECTS, ReadyQuery, ready_queries
from audit.tables import (
    BOOL,
    BYTES,
    DATE,
    INT,
    INTS,
    TEXT,
    TIME,
    AuditTable,
    kept_form,
)
from tests.docs import source

PAGE = source.ROOT / "docs" / "audit" / "tables.md"
QUERIES_PAGE = source.ROOT / "docs" / "audit" / "queries.md"
KINDS = {
    TEXT: "text",
    INT: "integer",
    INTS: "integers",
    BOOL: "boolean",
    BYTES: "bytes",
    TIME: "timestamp",
    DATE: "date",
}
_DEFINED = "Definitions that all tables share:"


def definitions() -> str:
    """What all tables share, as audit/tables says it."""
    text = (tables.__doc__ or "").partition(_DEFINED)[2]
    assert text, f"audit.tables says no {_DEFINED!r}"
    return f"{text.strip()}\n"


def overview() -> str:
    """Which table is a job, and where it is kept."""
    kept = {table.name: path for path, table in tables.KEPT.items()}
    named = {table.name: table for table in (*tables.TABLES, *tables.KEPT.values())}
    lines = ["| table | `logberg audit run` | kept in |", "|---|---|---|"]
    for name in named:
        job = f"`{name}`" if name in tables.BY_NAME else ""
        folder = f"`{kept[name]}`" if name in kept else ""
        lines.append(f"| [{name}](#{name}) | {job} | {folder} |")
    return "\n".join(lines) + "\n"


def all_tables() -> str:
    """Each table with its meaning and its columns."""
    named = {table.name: table for table in (*tables.TABLES, *tables.KEPT.values())}
    return "\n".join(map(_table, named.values()))


def _table(table: AuditTable) -> str:
    is_kept = table in tables.KEPT.values()
    lines = [f"### {table.name}", "", table.meaning, ""]
    key = ", ".join(f"`{column.name}`" for column in table.columns[: table.key])
    lines += [f"Ordered by {key}.", ""]
    if not is_kept:
        lines += ["| column | type | null | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{c.name}` | {KINDS[c.kind]} | {_null(c.nullable)} | {c.meaning} |"
            for c in table.columns
        ]
        return "\n".join(lines) + "\n"
    lines += ["| column | type | kept as | null | meaning |", "|---|---|---|---|---|"]
    for column, kept in zip(table.columns, kept_form(table).columns, strict=True):
        shown = (
            KINDS[kept.kind] if kept.name == column.name else f"`{kept.name}`, {KINDS[kept.kind]}"
        )
        lines.append(
            f"| `{column.name}` | {KINDS[column.kind]} | {shown} | {_null(column.nullable)} | "
            f"{column.meaning} |"
        )
    return "\n".join(lines) + "\n"


def _null(nullable: bool) -> str:
    return "yes" if nullable else ""


def all_queries() -> str:
    """Each ready query with what it answers, its parameters and its SQL, by subject."""
    parts = []
    for subject in SUBJECTS:
        parts.append(f"### {subject}\n")
        parts += [_query(query) for query in ready_queries().values() if query.subject == subject]
    return "\n".join(parts)


def _query(query: ReadyQuery) -> str:
    read = ", ".join(f"[{name}](tables.md#{name})" for name in query.tables())
    lines = [f"#### {query.name}", "", f"{query.sentence} Reads {read}.", ""]
    for name, default, meaning in query.parameters:
        lines.append(f"- `${name}` (`{default}`): {meaning}")
    lines += [""] if query.parameters else []
    return "\n".join([*lines, "```sql", query.sql, "```", ""])
