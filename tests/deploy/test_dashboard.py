"""The dashboard: every panel's query is answered with data by a real Prometheus."""

import json
from pathlib import Path

import pytest

from tests.deploy.panels import DASHBOARD, asked_anew, panels
from tests.deploy.promtool import need_prometheus
from tests.deploy.test_alerts import _METRIC, declared


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
