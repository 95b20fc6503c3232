"""Takes the pictures of the docs: `python -m tests.report.pictures`, with a browser.

Rule: the report is that of a generated month with seed 7, so that everybody gets the same; that of
the demo is of its made-up week. It needs logberg[audit].
"""

import base64
import tempfile
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner

from audit.generated import write_history
from logberg.commands.audit.report import FILE, command
from logberg.commands.demo_audit import WEEK, find_intruder, make_report
from tests.docs.source import ROOT
from tests.report.chromium import browser
from tests.report.opened import Opened

FOLDER = ROOT / "docs" / "pictures"
_WIDTH = 1200
_SCREEN = 800
_PICTURES = {
    "audit-report.png": ("header", ".findings"),
    "audit-report-leaders.png": ("#timelines h2", "#fencing figure"),
}
_OF_DEMO = "demo-report.png"
"""From the top of the first element to the bottom of the second."""
_MARGIN = 28


def take(folder: Path) -> None:
    """Generate, report, photograph."""
    with tempfile.TemporaryDirectory() as temporary:
        history = write_history(Path(temporary) / "history", days=30, seed=7, replicas=3)
        arguments = [str(history.folder), "--out", temporary, "--title", "Metadata audit, October"]
        done = CliRunner().invoke(command, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        with browser() as driver:
            driver.set_window_size(_WIDTH, 1000)
            opened = Opened(driver, Path(temporary) / FILE)
            opened.run("document.querySelector('nav').style.position = 'static'")
            for name, (first, last) in _PICTURES.items():
                (folder / name).write_bytes(_shot(opened, first, last))
            week = Path(temporary) / WEEK
            found = find_intruder(week)
            assert found is not None
            assert found.right
            opened = Opened(driver, make_report(week, "A made-up week"))
            opened.run("document.querySelector('nav').style.position = 'static'")
            screen = {"x": 0, "y": 0, "width": _WIDTH, "height": _SCREEN, "scale": 1}
            (folder / _OF_DEMO).write_bytes(_clipped(opened, screen))


def _shot(opened: Opened, first: str, last: str) -> bytes:
    top, bottom = opened.run(
        "const at = (selector, side) => window.scrollY +"
        " document.querySelector(selector).getBoundingClientRect()[side];"
        "return [at(arguments[0], 'top'), at(arguments[1], 'bottom')]",
        first,
        last,
    )
    begin = max(0, top - _MARGIN)
    clip = {"x": 0, "y": begin, "width": _WIDTH, "height": bottom + _MARGIN - begin, "scale": 1}
    return _clipped(opened, clip)


def _clipped(opened: Opened, clip: Mapping[str, float]) -> bytes:
    found = opened.driver.execute_cdp_cmd(
        "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
    )
    return base64.b64decode(found["data"])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    take(FOLDER)
