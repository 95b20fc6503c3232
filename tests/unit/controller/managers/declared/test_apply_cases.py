"""The table of applies: from a state and a declaration to a plan, records or errors, over HTTP."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.unit.controller.managers.clients.running_cases import filled
from tests.unit.controller.managers.declared.declared_cluster import DeclaredCluster, words

CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "cases/apply.toml").read_text()
)["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_case(case: dict[str, Any]) -> None:
    cluster = DeclaredCluster(**case.get("settings", {}))
    for given in filled(case.get("given", []), {}):
        if isinstance(given, list):
            status, reply = cluster.cluster.ask(*given)
            assert status == 200, reply
        else:
            assert cluster.applied(given)["refused"] == 0
    wanted = filled(case["apply"], {})
    before = cluster.offset
    if "code" in case:
        status, reply = cluster.apply(wanted)
        assert (status, reply["code"]) == (case["status"], case["code"])
        assert cluster.offset == before
        return
    dry = cluster.applied({**wanted, "dryRun": True})
    assert words(dry) == case.get("dry_plan", case["plan"])
    assert cluster.offset == before
    done = cluster.applied(wanted)
    assert words(done) == case["plan"]
    assert cluster.written(before) == case.get("records", [])
    if done["refused"]:
        assert cluster.offset == before, "a part was written"
        assert done["refused"] == sum("!" in line for line in case["plan"])
        return
    assert done["plan"] == dry["plan"], "the plan that one confirms is the one that is applied"
    assert sorted(record["type"] for record in dry["records"]) == cluster.types(before)
    assert case.get("rewrites") or cluster.is_idempotent(wanted)
    cluster.cluster.assert_equal()
