"""The browser and the pages that its tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.debian import NotInstalledError
from tests.report.chromium import browser
from tests.report.opened import Opened
from tests.report.sample import facts


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test may have to install the browser."""
    for item in items:
        if "/tests/report/" in str(item.path):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def running() -> Iterator[object]:
    """A browser; skips without one."""
    pytest.importorskip("selenium", reason="the browser is driven by selenium")
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    try:
        with browser() as found:
            yield found
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the made-up month."""
    from audit.report.page import page  # noqa: PLC0415

    path = tmp_path_factory.mktemp("report") / "audit-report.html"
    path.write_text(page(facts()), encoding="utf-8")
    return path


@pytest.fixture
def opened(running: object, page_file: Path) -> Opened:
    """That page, opened afresh from disk."""
    return Opened(running, page_file)
