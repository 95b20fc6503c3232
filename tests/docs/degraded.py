"""Write the tables of docs/degraded.md from `tests.degraded.table`.

python -m tests.docs.degraded
"""

from collections.abc import Iterable

from controller.http.degraded import RETRY_AFTER_S
from controller.http.routes import ROUTES
from tests.degraded.table import TABLE, Column, DegradedAnswer, columns_of
from tests.docs import source

PAGE = source.ROOT / "docs" / "degraded.md"
_BEGIN, _END = "<!-- made: {} -->\n", "<!-- end -->"


def page(text: str) -> str:
    """The page with its made parts as they should be."""
    for name, made in (("modes", _modes()), ("asks", _columns()), ("retry", _retry())):
        begin = _BEGIN.format(name)
        before, _, rest = text.partition(begin)
        text = before + begin + made + _END + rest.partition(_END)[2]
    return text


def _modes() -> str:
    columns = [each for each in Column if each is not Column.OWN]
    rows = [
        [mode.value, *(_cell(row.cells[column], column) for column in columns), row.then]
        for mode, row in TABLE.items()
    ]
    return _table(["mode", *(column.value for column in columns), "until"], rows)


def _cell(cell: DegradedAnswer, column: Column) -> str:
    if cell.code is None:
        return "done"
    if column is Column.READY:
        return "503, why"
    late = f" ≤ {cell.within_s:g} s" if cell.within_s >= 1 else ""
    return f"{cell.code.status} `{cell.code}`{late}"


def _columns() -> str:
    rows = [
        [each.value, ", ".join(f"`{r.method} {r.path}`" for r in ROUTES if each in columns_of(r))]
        for each in Column
    ]
    return _table(["asked for", "requests"], rows)


def _retry() -> str:
    return _table(
        ["code", "`retry-after`, s"], [[f"`{code}`", str(s)] for code, s in RETRY_AFTER_S.items()]
    )


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
