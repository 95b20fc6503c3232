"""The alert rules: promtool accepts them, each fires by its case, and names what there is."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.alert_cases import CASES, AlertCase
from tests.deploy.promtool import need_prometheus
from tests.docs import source
from tests.docs.pages import anchors

FOLDER = source.ROOT / "deploy" / "prometheus"
RULES = FOLDER / "logberg.rules.yml"
SOON_MINUTES = 100
_METRIC = re.compile(r"\b((?:logberg|process)_[a-z_]+)\b")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def declared() -> set[str]:
    """Every name under which a metric of ours appears."""
    names = set()
    for metric in source.metrics():
        names.add(metric.name)
        if metric.kind == "histogram":
            names |= {f"{metric.name}_{end}" for end in ("bucket", "sum", "count")}
    return names


def unit_tests(cases: Mapping[str, AlertCase], every: str) -> dict[str, Any]:
    """What promtool is to test: each alert's two cases, each apart from all others.

    `every`: how often rules are evaluated.
    """
    tests = []
    for name, case in cases.items():
        for series, count in ((case.fires, 1), (case.quiet, 0)):
            asked = f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)'
            split = [one.rsplit("} ", 1) for one in series]
            tests.append(
                {
                    "interval": "1m",
                    "input_series": [
                        {"series": f"{metric}}}", "values": values} for metric, values in split
                    ],
                    "promql_expr_test": [
                        {
                            "expr": asked,
                            "eval_time": f"{case.at_minute}m",
                            "exp_samples": [{"labels": "{}", "value": count}],
                        }
                    ],
                }
            )
    return {"rule_files": [str(RULES)], "evaluation_interval": every, "tests": tests}


def promtool(*arguments: str) -> str:
    done = subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_alert_has_a_case() -> None:
    assert [rule["alert"] for rule in rules()] == list(dict.fromkeys(r["alert"] for r in rules()))
    assert {rule["alert"] for rule in rules()} == set(CASES)


def test_every_alert_says_how_bad_it_is_and_what_to_read() -> None:
    sections = anchors(source.ROOT / "docs" / "runbook.md")
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
        assert rule["annotations"]["summary"].endswith("."), rule["alert"]
        assert rule["annotations"]["runbook"] in sections, rule["alert"]


def test_alerts_name_metrics_that_there_are() -> None:
    used = {name for rule in rules() for name in _METRIC.findall(rule["expr"])}
    assert len(used) > 20
    assert used - declared() == set()


def test_a_metric_that_is_gone_would_be_noticed() -> None:
    assert "logberg_no_such_metric" not in declared()
    assert _METRIC.findall("rate(logberg_no_such_metric[5m])") == ["logberg_no_such_metric"]


@pytest.mark.slow
def test_promtool_fires_each_alert_by_its_case_and_only_then(tmp_path: Path) -> None:
    need_prometheus()
    assert "SUCCESS" in promtool("check", "rules", str(RULES))
    # promtool evaluates all rules from the first minute on, so days are tested in longer steps.
    long = {name: case for name, case in CASES.items() if case.at_minute > SOON_MINUTES}
    soon = {name: case for name, case in CASES.items() if name not in long}
    for kind, cases, every in (("soon", soon, "15s"), ("long", long, "10m")):
        file = tmp_path / f"{kind}.test.yml"
        file.write_text(yaml.safe_dump(unit_tests(cases, every)))
        assert "SUCCESS" in promtool("test", "rules", str(file))


@pytest.mark.slow
def test_promtool_accepts_the_scrape_configuration(tmp_path: Path) -> None:
    need_prometheus()
    # promtool looks for the files of credentials, which only the operator's machine has.
    for name in ("ca.crt", "token"):
        (tmp_path / name).write_text("")
    text = (FOLDER / "prometheus.yml").read_text().replace("/etc/prometheus/logberg", str(tmp_path))
    file = tmp_path / "prometheus.yml"
    file.write_text(text.replace("logberg.rules.yml", str(RULES)))
    promtool("check", "config", "--syntax-only", str(file))
