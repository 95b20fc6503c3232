"""Every alert that can be caused here fires by its real cause, as the page says."""

import os
import re
from pathlib import Path

import pytest
import yaml

from tests.deploy.caused_alerts import NOT_CAUSED, PAGE, STORIES
from tests.deploy.prometheus_process import RULES
from tests.deploy.promtool import need_prometheus
from tests.deploy.shorter_waits import LASTS, with_shorter_waits
from tests.deploy.test_alerts import rules

_ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| (.*) \| ([^|]*) \|$", re.MULTILINE)


def test_only_the_waits_are_shorter() -> None:
    shipped = yaml.safe_load(RULES.read_text())
    shorter = with_shorter_waits(shipped)
    pairs = [
        (before, after)
        for groups in zip(shipped["groups"], shorter["groups"], strict=True)
        for before, after in zip(groups[0]["rules"], groups[1]["rules"], strict=True)
    ]
    assert len(pairs) == len(rules())
    for before, after in pairs:
        assert before.keys() == after.keys()
        differing = {key for key in before if before[key] != after[key]}
        assert differing == ({"for"} & before.keys())
        assert after.get("for", LASTS) == LASTS


def test_the_page_has_a_row_for_every_alert() -> None:
    rows = {alert: after for alert, _, _, after in _ROW.findall(PAGE.read_text())}
    assert set(rows) == {rule["alert"] for rule in rules()}
    assert {alert for alert, after in rows.items() if not after.endswith(" s")} == set(NOT_CAUSED)


@pytest.mark.skipif(os.environ.get("LOGBERG_KIT") != "1", reason="opt-in: `make kit`")
@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("story", list(STORIES))
def test_alerts_fire_by_their_causes(story: str, tmp_path: Path) -> None:
    need_prometheus()
    fired = {one.alert for one in STORIES[story](tmp_path)}
    assert fired
    assert fired <= {alert for alert, *_ in _ROW.findall(PAGE.read_text())} - set(NOT_CAUSED)
