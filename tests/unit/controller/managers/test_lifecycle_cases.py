"""The lifecycle of brokers and feature levels, case by case from data files: `lifecycle_steps`."""

import tomllib
from typing import Any

import pytest

from tests.unit.controller.managers.case_steps import FOLDER
from tests.unit.controller.managers.lifecycle_steps import LifecycleCase

CASES = {
    name: tomllib.loads((FOLDER / f"{name}.toml").read_text())["case"]
    for name in ("lifecycle", "features")
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for cases in CASES.values() for case in cases]
)
def test_case(case: dict[str, Any]) -> None:
    LifecycleCase(case).run(case["steps"])


@pytest.mark.parametrize(
    ("name", "section", "rows"),
    [
        ("lifecycle", "3", 10),
        ("lifecycle", "4", 5),
        ("lifecycle", "5", 15),
        ("lifecycle", "8", 12),
        ("lifecycle", "9", 13),
        ("features", "features", 12),
    ],
)
def test_each_row_of_a_section_has_a_case(name: str, section: str, rows: int) -> None:
    assert sum(case["name"].split("-")[0] == section for case in CASES[name]) == rows
