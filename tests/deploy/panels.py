"""Asks a real Prometheus, which scrapes a real cluster, every query of the dashboard.

    python -m tests.deploy.panels       writes the table of docs/operating/dashboard.md

Rule: the cluster is three controllers and two agents, with TLS and tokens, as `logberg up` makes
it.
"""

import json
import math
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.deploy.prometheus_process import Prometheus, Series
from tests.docs import source
from tests.docs.generate import table
from tests.process.running_cluster import RunningCluster

DASHBOARD = source.ROOT / "deploy" / "grafana" / "logberg.json"
PAGE = source.ROOT / "docs" / "operating" / "dashboard.md"
PATIENCE_S = 60.0
WORK_S = 15.0
"""So long the cluster works at least, so that rates have something to be made from."""


class Panel(NamedTuple):
    """One query of the dashboard."""

    row: str
    title: str
    unit: str
    query: str


class PanelAnswer(NamedTuple):
    """What Prometheus answered."""

    panel: Panel
    series: Series


def panels() -> list[Panel]:
    """Every query, in the order of the dashboard."""
    found, row = [], ""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
            continue
        unit = panel["fieldConfig"]["defaults"]["unit"]
        found += [Panel(row, panel["title"], unit, t["expr"]) for t in panel["targets"]]
    return found


def answers(prometheus: Prometheus, cluster: RunningCluster) -> list[PanelAnswer]:
    """Let the cluster work until every query has data, and return what was answered."""
    began = time.monotonic()
    while True:
        cluster.create(f"panel-{len(cluster.acknowledged)}", replication_factor=2)
        try:
            found = [PanelAnswer(panel, prometheus.query(panel.query)) for panel in panels()]
        except OSError:
            # It listens a moment after its start.
            found = []
        worked_s = time.monotonic() - began
        if worked_s > WORK_S and found and all(each.series for each in found):
            return found
        empty = [each.panel.title for each in found if not each.series]
        assert worked_s < PATIENCE_S, f"no data: {empty}\n{prometheus.log()[-3000:]}"
        time.sleep(0.5)


def shown(answer: PanelAnswer) -> str:
    """The answer in a cell: the number of series, and their range."""
    values = [value for _, value in answer.series]
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return f"{len(values)} series: not known yet"
    low, high = min(known), max(known)
    span = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    return f"{len(values)} series: {span}"


def panel_table(found: list[PanelAnswer]) -> str:
    """The table for the page."""
    return table(
        ("row", "panel", "unit", "query", "answered"),
        (
            (
                answer.panel.row,
                answer.panel.title,
                answer.panel.unit,
                f"`{answer.panel.query}`",
                shown(answer),
            )
            for answer in found
        ),
    )


def asked_anew(folder: Path) -> list[PanelAnswer]:
    """Run a cluster and a Prometheus, and return the answers."""
    cluster = RunningCluster(folder / "cluster", brokers=2)
    try:
        cluster.start()
        with Prometheus(folder, cluster).running() as prometheus:
            found = answers(prometheus, cluster)
        cluster.stop()
        return found
    finally:
        cluster.kill()


def write_part(page: Path, name: str, text: str) -> None:
    """Replace a made part of a page. Raises AssertionError if the page has no place for it."""
    before, mark, rest = page.read_text().partition(f"<!-- made: {name} -->\n")
    assert mark, f"{page} has no place for {name}"
    page.write_text(f"{before}{mark}{text}{rest[rest.index('<!-- end -->') :]}")


def main() -> None:
    """Write the page's table."""
    with tempfile.TemporaryDirectory(prefix="logberg-panels-") as folder:
        found = asked_anew(Path(folder))
    write_part(PAGE, "panels", panel_table(found))


if __name__ == "__main__":
    main()
