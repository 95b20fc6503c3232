"""Skips the tests of this folder unless somebody asks for them. Those without Kafka always run."""

import os
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_NEED_NO_KAFKA = _HERE / "faults"
_LIMIT_S = 900
"""For one test, which may start five brokers one after another on a busy machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    wanted = os.environ.get("LOGBERG_KAFKA") == "1"
    for item in items:
        if item.path.is_relative_to(_HERE) and not item.path.is_relative_to(_NEED_NO_KAFKA):
            item.add_marker(
                pytest.mark.timeout(_LIMIT_S)
                if wanted
                else pytest.mark.skip(reason="runs Apache Kafka: make kafka")
            )
