"""The dashboard: Grafana's own schema accepts it, and Prometheus answers every panel with data.

The page of the docs lists the same panels.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.peers.tools import NoToolError
from tests.deploy.go_tools import DASHBOARD_CHECK, go_tool
from tests.deploy.panels import DASHBOARD, PAGE, asked_anew, panels
from tests.deploy.promtool import need_prometheus
from tests.deploy.test_alerts import _METRIC, declared

opt_in = pytest.mark.skipif(os.environ.get("LOGBERG_KIT") != "1", reason="opt-in: `make kit`")


def test_panels_name_metrics_that_there_are() -> None:
    used = {name for panel in panels() for name in _METRIC.findall(panel.query)}
    assert len(used) > 25
    assert used - declared() == set()


def test_panels_lie_side_by_side() -> None:
    taken: set[tuple[int, int]] = set()
    ids = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        ids.add(panel["id"])
    assert len(ids) == len(json.loads(DASHBOARD.read_text())["panels"])


def test_the_page_lists_every_panel_with_an_answer() -> None:
    rows = re.findall(
        r"^\| [^|]+ \| ([^|]+) \| [^|]+ \| .* \| (\d+) series: [^|]+ \|$",
        PAGE.read_text(),
        re.MULTILINE,
    )
    assert [title for title, _ in rows] == [panel.title for panel in panels()]
    assert all(int(series) > 0 for _, series in rows)


@opt_in
@pytest.mark.process
@pytest.mark.slow
def test_grafanas_own_schema_accepts_the_dashboard_and_no_field_more(tmp_path: Path) -> None:
    try:
        check = go_tool(DASHBOARD_CHECK)
    except NoToolError as error:
        pytest.skip(str(error))

    def judged(file: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(check), str(file)], capture_output=True, text=True, timeout=60, check=False
        )

    accepted = judged(DASHBOARD)
    assert accepted.returncode == 0, accepted.stderr
    assert (
        accepted.stdout
        == f"accepted: {len(json.loads(DASHBOARD.read_text())['panels'])} panels and rows\n"
    )
    wrong = json.loads(DASHBOARD.read_text())
    wrong["panels"][1]["noSuchField"] = "misspelt"
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    refused = judged(tmp_path / "wrong.json")
    assert refused.returncode == 1
    assert "noSuchField" in refused.stderr


@opt_in
@pytest.mark.process
@pytest.mark.slow
def test_prometheus_answers_every_panel_with_data(tmp_path: Path) -> None:
    need_prometheus()
    found = asked_anew(tmp_path)
    assert [answer.panel for answer in found] == panels()
    assert [answer.panel.title for answer in found if not answer.series] == []
    values = {answer.panel.title: [value for _, value in answer.series] for answer in found}
    assert values["Active controllers"] == [1.0]
    assert values["Nodes that answer"] == [5.0]
    assert all(0 < days <= 3650 for days in values["Certificates expire in"])
    assert all(abs(seconds) < 5 for seconds in values["Clock, against Prometheus'"])
