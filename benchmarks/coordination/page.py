"""Shows a run as a table in Markdown. A figure that misses its bound is marked."""

from typing import Final

from benchmarks.coordination.judging import FIGURES, Measured, missed

_NAMES: Final = {"logberg": "Logberg", "etcd": "etcd", "zookeeper": "ZooKeeper"}


def table(measured: Measured) -> str:
    """Return the rows that were measured."""
    bad = set(missed(measured))
    lines = [f"| | {' | '.join(_NAMES.values())} | bound |", f"|---|{'--:|' * (len(_NAMES) + 1)}"]
    for row in FIGURES:
        stores = measured.get(row.piece)
        if stores is None:
            continue
        cells = [_short(stores.get(name, {}).get(row.figure)) for name in _NAMES]
        limit = "" if row.most is None else f"{row.most:g}{' **missed**' if row in bad else ''}"
        lines.append(f"| {row.what} | {' | '.join(cells)} | {limit} |")
    return "\n".join(lines)


def _short(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
