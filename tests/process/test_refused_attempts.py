"""Refused attempts on three real processes: callers, metrics, log and audit count the same."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from audit.embedded import run_job
from audit.places.replicas import open_all
from benchmarks.attempts.__main__ import FLOODS, MALLORY, Bench, Flood
from tests.oracles.ocsf.judge import problems
from tests.process.running_cluster import logberg

pytestmark = pytest.mark.process

SHARE = {"no-token": 2_000, "wrong-token": 400, "no-right": 1_000, "logins": 12, "big-bodies": 8}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bench, dict[str, Any]]]:
    bench = Bench(tmp_path_factory.mktemp("attempts") / "data", 1_000)
    try:
        floods = [flood for flood in FLOODS if flood.kind in SHARE]
        yield bench, {flood.kind: bench.run_flood(smaller(flood)) for flood in floods}
    finally:
        bench.stop()


def smaller(flood: Flood) -> Flood:
    return flood._replace(attempts=SHARE[flood.kind], threads=2)


def place(bench: Bench) -> str:
    return str(bench.cluster.folder / f"controller-{bench.leader()}")


@pytest.mark.parametrize("kind", SHARE)
def test_callers_metrics_and_log_count_the_same(attacked: tuple[Bench, Any], kind: str) -> None:
    _, rows = attacked
    row = rows[kind]
    assert row.refused == SHARE[kind], row
    assert row.is_good, row
    assert row.bytes < 20_000, row


def test_the_table_says_who_tried_what_and_why_not(attacked: tuple[Bench, Any]) -> None:
    bench, _ = attacked
    found: Counter[tuple[str, str, str]] = Counter()
    for row in run_job("attempts", open_all([place(bench)])):
        _, _, _, outcome, principal, *_ = row
        assert outcome == "refused"
        assert row[9] == "127.0.0.1"
        found[principal, row[7] if row[7] == "login" else "", row[10]] += row[12]
    assert found["", "", "UNAUTHENTICATED"] == SHARE["no-token"] + SHARE["wrong-token"] + 8
    assert found["", "login", "SASL_AUTHENTICATION_FAILED"] == SHARE["logins"]
    assert found[MALLORY, "", "TOPIC_AUTHORIZATION_FAILED"] == SHARE["no-right"]


def test_who_tried_to_see_a_thing(attacked: tuple[Bench, Any]) -> None:
    bench, _ = attacked
    said = logberg("audit", "who", place(bench), "topic:t-1", "--output", "json")
    tried = [each["attempts"] for each in json.loads(said.out) if "attempts" in each]
    assert {each["principal"] for each in tried} == {MALLORY}
    assert {each["reason"] for each in tried} == {"DESCRIBE on TOPIC t-1"}
    shown = logberg("audit", "who", place(bench), "topic:t-1").out
    assert f"{MALLORY} (token from 127.0.0.1)  refused" in shown
    assert "refused" not in logberg("audit", "who", place(bench), "topic:t-1", "--no-refused").out


def test_the_export_has_every_attempt(attacked: tuple[Bench, Any]) -> None:
    bench, _ = attacked
    said = logberg("audit", "export", place(bench), "--format", "ocsf", "--what", "attempts")
    events = [json.loads(line) for line in said.out.splitlines()]
    assert [problem for event in events for problem in problems(event)] == []
    rows = run_job("attempts", open_all([place(bench)]))
    assert sum(event.get("count", 1) for event in events) == sum(row[12] for row in rows)
    assert len(events) == len(rows)


def test_the_report_has_a_section(attacked: tuple[Bench, Any], tmp_path: Path) -> None:
    bench, _ = attacked
    said = logberg("audit", "report", place(bench), "--out", str(tmp_path / "report"))
    assert said.code == 0, said
    (page,) = (tmp_path / "report").glob("*.html")
    assert "Who was refused most" in page.read_text()
    assert MALLORY in page.read_text()
