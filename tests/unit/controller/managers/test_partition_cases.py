"""Topics and partitions, case by case from data files: see `case_steps`."""

from typing import Any

import pytest

from tests.unit.controller.managers.case_steps import CaseSteps, load

FILES = (
    "create_topics",
    "create_partitions",
    "delete_topics",
    "reassignments",
    "directories",
)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{name}: {case['case']}") for name in FILES for case in load(name)],
)
def test_case(case: dict[str, Any]) -> None:
    cluster = CaseSteps(case)
    cluster.run(case["steps"])
    cluster.cluster.assert_equal()
