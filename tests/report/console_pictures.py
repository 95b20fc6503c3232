"""Takes the pictures of the console's page: `python -m tests.report.console_pictures`.

Rule: the history is a generated month with seed 7, so that everybody gets the same.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from audit.generated import write_history
from tests.docs.source import ROOT
from tests.report.chromium import browser
from tests.report.served import asked, serving

FOLDER = ROOT / "docs" / "pictures"
SIZE = (1200, 820)
PHONE = {"width": 400, "height": 820, "deviceScaleFactor": 2, "mobile": True}
PATIENCE_S = 90.0


def places(url: str) -> dict[str, str]:
    """Return the address of each picture's view, by the picture's name."""
    end = asked(url, "status")[1]["logEnd"]
    day = {name: asked(url, f"moment?at=-{back}")[1]["offset"] for name, back in DAYS.items()}
    return {
        "console-overview": "view=overview",
        "console-search": f"view=search&q=mallory&at={end}",
        "console-difference": f"view=diff&table=acls&from={day['from']}&at={day['at']}",
        "console-state": f"view=state&table=brokers&at={day['at']}",
    }


DAYS = {"from": "9d", "at": "8d"}


def take(folder: Path) -> None:
    """Generate, serve, photograph."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        write_history(work / "made-up", days=30, seed=7, replicas=1)
        with serving("made-up", work / "index", folder=work) as url, browser() as driver:
            _judged(url)
            driver.set_window_size(*SIZE)
            for name, place in places(url).items():
                driver.get("about:blank")
                driver.get(f"{url}#{place}")
                _wait(driver)
                driver.save_screenshot(str(folder / f"{name}.png"))
            _on_a_phone_in_the_dark(driver)
            driver.get("about:blank")
            driver.get(f"{url}#view=overview")
            _wait(driver)
            driver.save_screenshot(str(folder / "console-phone.png"))


def _on_a_phone_in_the_dark(driver: Any) -> None:
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": dark})


def _judged(url: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not asked(url, "status")[1]["hasFindings"]:
        assert time.monotonic() < until, "the log was not judged in time"
        time.sleep(0.1)


def _wait(driver: Any) -> None:
    until = time.monotonic() + PATIENCE_S
    script = "return document.getElementById('told').innerText"
    while not driver.execute_script(script):
        assert time.monotonic() < until, "the page did not open in time"
        time.sleep(0.1)
    time.sleep(0.5)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    take(FOLDER)
