"""Skips the tests of this folder unless somebody asks for them."""

import os
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("LOGBERG_KAFKA") == "1":
        return
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.skip(reason="runs Apache Kafka: make kafka"))
