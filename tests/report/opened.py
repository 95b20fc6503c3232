"""A page in the browser, with what tests ask of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Opened:
    """One page, loaded from disk; what was noted before it is forgotten."""

    def __init__(self, driver: Any, path: Path) -> None:
        self.driver = driver
        self.emulate()
        driver.get("about:blank")
        driver.get_log("browser")
        driver.get_log("performance")
        self.url = path.as_uri()
        driver.get(self.url)
        self.wait()

    def wait(self) -> None:
        """Wait until a page of ours has unpacked its data; other pages have none."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "const look = () => !document.getElementById('data')"
            " || document.documentElement.dataset.ready ? done() : setTimeout(look, 10); look();"
        )

    def emulate(self, media: str = "", **features: str) -> None:
        """Pretend to be paper, or someone who likes it dark: `prefers_color_scheme="dark"`."""
        pairs = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": media, "features": pairs}
        )

    @contextmanager
    def as_wide_as(self, width: int) -> Iterator[None]:
        """Pretend to be a screen of this width in CSS pixels; a window can't be a phone's."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page; its value."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        """Elements, in the page's order."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        """The only element that fits."""
        (found,) = self.all(selector)
        return found

    def console(self) -> list[str]:
        """What was said on the console since."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requested(self) -> list[str]:
        """Every URL that was asked for since, the page's own included."""
        messages = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def style(self, element: Any, name: str) -> str:
        """A computed style."""
        return self.run("return getComputedStyle(arguments[0])[arguments[1]]", element, name)
