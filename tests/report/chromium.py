"""A headless Chromium for tests of pages: found, or installed where that is meant to work.

Rule: it is installed as `tests.debian` says; where it can't be had, tests that need one are skipped
with the reason.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.debian import install

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--window-size=1200,900",
)


def programs() -> tuple[str, str]:
    """Return the browser's and its driver's paths. Raises NotInstalledError."""
    install("chromium", "chromium-driver", is_there=lambda: _found() is not None)
    found = _found()
    assert found is not None
    return found


def _found() -> tuple[str, str] | None:
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


@contextmanager
def browser() -> Iterator[Any]:
    """Run a browser that notes its console and every request. Raises NotInstalledError."""
    from selenium.webdriver import Chrome, ChromeOptions  # noqa: PLC0415
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415

    program, driver = programs()
    options = ChromeOptions()
    options.binary_location = program
    for switch in _SWITCHES:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = Chrome(options, Service(driver))
    try:
        yield running
    finally:
        running.quit()
