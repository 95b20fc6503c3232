"""Shows a run: a table in Markdown, and a picture of the ratios.

Rule: the page shows what we lose as plainly as what we win. A ratio above 1 means that we are
better, whatever the figure's unit is.
"""

from typing import Any, Final

from benchmarks.instruments.vega_drawing import draw
from benchmarks.peers.judging import Run, judge, middle, ratio
from benchmarks.peers.rows import BOUNDS, ROWS, UNITS, Row

_NAMES: Final = {"logberg": "Logberg", "etcd": "etcd", "zookeeper": "ZooKeeper", "kraft": "KRaft"}
_COLOURS: Final = {"etcd": "#0b5cad", "ZooKeeper": "#1a7f37", "KRaft": "#8250df"}


def table(run: Run) -> str:
    """Return the page's text: the machine, the figures, the bounds."""
    lines = [
        f"{run.machine}. Medians of the rounds. In brackets: how many times better we are.",
        "",
        f"| work | {' | '.join(_NAMES.values())} |",
        f"|---|{'--:|' * len(_NAMES)}",
    ]
    for row in ROWS:
        if row.key in run.rounds:
            lines += [_line(run, row, figure) for figure in row.shown]
    lines += ["", "| bound | ours | limit | |", "|---|--:|--:|---|"]
    what = {row.key: row.what for row in ROWS}
    for judged in judge(run, BOUNDS):
        bound = judged.bound
        name = f"{what[bound.row]}: {UNITS[bound.figure]}"
        if bound.against is not None:
            name += f", {bound.limit:g} times {_NAMES.get(bound.against, 'the best peer')}'s"
        verdict = "met" if judged.met else "**missed**"
        lines.append(f"| {name} | {_short(judged.ours)} | {_short(judged.limit)} | {verdict} |")
    return "\n".join(lines) + "\n"


def _line(run: Run, row: Row, figure: str) -> str:
    cells = []
    for service in _NAMES:
        value = middle(run.rounds[row.key].get(service, ()), figure)
        cell = "-" if value is None else _short(value)
        found = None if service == "logberg" else _better(run, row.key, figure, service)
        if found is not None:
            cell += f" ({found[0]:.2g}; {found[1]:.2g} to {found[2]:.2g})"
        cells.append(cell)
    first = row.what if figure == row.shown[0] else ""
    return f"| {first} {UNITS[figure]} | {' | '.join(cells)} |"


def _better(run: Run, row: str, figure: str, peer: str) -> tuple[float, float, float] | None:
    """The ratio turned so that more is better for us: median, least, most."""
    found = ratio(run, row, figure, peer)
    if found is None or not found.least:
        return None
    if figure == "rate":
        return found
    return 1 / found.median, 1 / found.most, 1 / found.least


def _short(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def picture(run: Run) -> str:
    """Return an SVG file: for each row, how many times better or worse we are than each peer."""
    dots = []
    for row in ROWS:
        for peer in _COLOURS:
            service = next(key for key, name in _NAMES.items() if name == peer)
            found = _better(run, row.key, row.shown[0], service)
            if found is not None:
                what = f"{row.what}, {UNITS[row.shown[0]]}"
                dots.append(
                    {
                        "row": what,
                        "peer": peer,
                        "ratio": found[0],
                        "least": found[1],
                        "most": found[2],
                    }
                )
    order = list(dict.fromkeys(dot["row"] for dot in dots))
    y = {
        "field": "row",
        "type": "nominal",
        "sort": order,
        "title": None,
        "axis": {"labelLimit": 380},
    }
    x = {"type": "quantitative", "scale": {"type": "log"}}
    colour = {
        "field": "peer",
        "type": "nominal",
        "scale": {"domain": [*_COLOURS], "range": [*_COLOURS.values()]},
        "legend": {"title": None, "orient": "bottom"},
    }
    spec: dict[str, Any] = {
        "background": "#ffffff",
        "width": 960,
        "height": 26 * len(order),
        "padding": 8,
        "data": {"values": dots},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "y": y,
                    "x": {**x, "field": "least", "title": "times better than the peer (1: equal)"},
                    "x2": {"field": "most"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": {"y": y, "x": {**x, "field": "ratio"}, "color": colour},
            },
            {
                "data": {"values": [{"one": 1}]},
                "mark": {"type": "rule", "color": "#1f2328"},
                "encoding": {"x": {**x, "field": "one"}},
            },
        ],
    }
    return str(
        draw(spec, "Logberg beside etcd, ZooKeeper and KRaft: how many times better or worse")
    )
