"""What a view shows, as a file: CSV for people, JSON lines for programs.

Rule: an export has the rows of all pages, up to `EXPORT_MAX`, and says if it left some out. In CSV,
a text that a spreadsheet would take for a formula gets an apostrophe before it.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from audit.console import views
from audit.console.asked import PAGE_MAX, AskedError, ConsoleQuery
from audit.console.views import Viewed

EXPORT_MAX: Final = 10_000
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_encode = msgspec.json.Encoder().encode
Row = dict[str, Any]


def exported(asked: ConsoleQuery, viewed: Viewed) -> tuple[Mapping[str, str], bytes]:
    """Return headers and content. Raises AskedError and what views raise."""
    name, kind = asked.text("view"), asked.text("format", "csv")
    if name not in _EXPORTS or kind not in ("csv", "json"):
        raise AskedError(
            f"{name!r} as {kind!r} can't be exported. Use view={'|'.join(_EXPORTS)} and"
            " format=csv|json."
        )
    rows: list[Row] = []
    is_cut = False
    for row in _all_rows(asked, viewed, _EXPORTS[name]):
        if len(rows) == EXPORT_MAX:
            is_cut = True
            break
        rows.append(row)
    headers = {
        "content-disposition": f'attachment; filename="logberg-{name}.{_SUFFIX[kind]}"',
        "content-type": "text/csv; charset=utf-8" if kind == "csv" else "application/x-ndjson",
        "x-logberg-rows": str(len(rows)),
        "x-logberg-complete": "no" if is_cut else "yes",
    }
    return headers, _csv(rows) if kind == "csv" else b"".join(_encode(row) + b"\n" for row in rows)


_SUFFIX: Final = {"csv": "csv", "json": "jsonl"}


def _all_rows(
    asked: ConsoleQuery, viewed: Viewed, rows_of: Callable[[Any], list[Row]]
) -> Iterator[Row]:
    """Yield the rows of one page after the other."""
    name = next(key for key, value in _EXPORTS.items() if value is rows_of)
    continues = "before" if name in ("search", "thing") else "after"
    query = {**asked.rest(), "limit": str(PAGE_MAX)}
    while True:
        each = ConsoleQuery(query)
        page = views.VIEWS[name](each, viewed)
        each.done()
        said = msgspec.to_builtins(page)
        yield from rows_of(said)
        if not said["next"]:
            return
        query[continues] = said["next"]


def _of_search(said: Any) -> list[Row]:
    return [{**row, "subjects": " ".join(row["subjects"])} for row in said["items"]]


def _of_state(said: Any) -> list[Row]:
    return [
        {"offset": said["offset"], "table": said["table"], "name": one["name"], **one["fields"]}
        for one in said["items"]
    ]


def _of_diff(said: Any) -> list[Row]:
    return [
        {
            "table": one["table"],
            "name": one["name"],
            "kind": one["kind"],
            "field": field,
            "before": before,
            "after": after,
        }
        for one in said["items"]
        for field, (before, after) in (one["fields"] or {"": (None, None)}).items()
    ]


def _of_thing(said: Any) -> list[Row]:
    return [
        {
            "at": one["at"],
            "timeMs": (one["cause"] or {}).get("timeMs"),
            "kind": one["kind"],
            "principal": (one["cause"] or {}).get("principal"),
            "clientAddress": (one["cause"] or {}).get("clientAddress"),
            "operation": (one["cause"] or {}).get("operation"),
            "reason": (one["cause"] or {}).get("reason"),
            "field": field,
            "before": before,
            "after": after,
        }
        for one in said["versions"]
        for field, (before, after) in (one["fields"] or {"": (None, None)}).items()
    ]


_EXPORTS: Final[Mapping[str, Callable[[Any], list[Row]]]] = {
    "search": _of_search,
    "state": _of_state,
    "diff": _of_diff,
    "thing": _of_thing,
}


def _csv(rows: list[Row]) -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in names])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if isinstance(value, list | dict):
        return _encode(value).decode()
    return value
