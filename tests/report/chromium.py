"""A headless Chromium for tests of pages: found, or installed where that is meant to work.

Rule: in CI, which is root on Debian, a missing browser is installed, once for all workers; anywhere
else tests that need one are skipped with the reason. Nothing is downloaded but by apt-get.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INSTALL_S = 240
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


class NoBrowserError(Exception):
    """There is no browser, and the reason why none was installed."""


def programs() -> tuple[str, str]:
    """Return the browser's and its driver's paths. Raises NoBrowserError."""
    found = _found()
    if found is None:
        _install()
        found = _found()
    if found is None:
        raise NoBrowserError("apt-get installed chromium, and it is not on the path")
    return found


def _found() -> tuple[str, str] | None:
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


def _install() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoBrowserError("chromium and chromedriver are not installed")
    lock_file = Path(tempfile.gettempdir()) / "quorate-tests-chromium.lock"
    with lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _found() is not None:
            return
        print("installing chromium and chromium-driver by apt-get for tests", file=sys.stderr)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "-y", "chromium", "chromium-driver"]):
            try:
                subprocess.run(
                    ["apt-get", "-qq", *arguments],
                    check=True,
                    capture_output=True,
                    env=environment,
                    timeout=INSTALL_S,
                )
            except (subprocess.SubprocessError, OSError) as error:
                raise NoBrowserError(f"apt-get could not install chromium: {error}") from error


@contextmanager
def browser() -> Iterator[object]:
    """Run a browser that notes its console and every request. Raises NoBrowserError."""
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
