"""The console in a real browser: search, the slider, differences, permalinks, light and dark."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from audit.generated import write_history
from ledger.batch import Provenance
from tests.report.sample import HOSTILE, REASON
from tests.report.served import asked, serving
from tests.unit.audit.nodes import write_node

pytestmark = [pytest.mark.process, pytest.mark.slow]
RECORDS = 6_000
WIDTHS = (400, 1280)
PATIENCE_S = 30.0


class Page:
    """The console, opened in a browser."""

    def __init__(self, driver: Any, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self, place: str = "") -> None:
        """Open an address as if somebody had sent it."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}#{place}")
        self.until(lambda: self.all("main h1, main #rows"))

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str = "main") -> str:
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until something holds."""
        end = time.monotonic() + PATIENCE_S
        while not (found := holds()):
            assert time.monotonic() < end, f"{self.driver.current_url}: {self.text('body')[:600]}"
            time.sleep(0.05)
        return found

    def place(self) -> dict[str, str]:
        said = self.run("return Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
        return dict(said)

    def middle(self, handle: str) -> float:
        """Return where a handle is."""
        return float(
            self.run(
                "const box = document.getElementById(arguments[0]).getBoundingClientRect();"
                "return box.left + box.width / 2",
                handle,
            )
        )

    def drag(self, handle: str, part: float) -> None:
        """Drag a handle to a part of the track."""
        left, width = self.run(
            "const box = document.getElementById('track').getBoundingClientRect();"
            "return [box.left, box.width]"
        )
        at, goal = self.middle(handle), left + width * part
        steps = ActionChains(self.driver, duration=20).click_and_hold(self.one(f"#{handle}"))
        for number in range(1, 5):
            steps.move_by_offset(round((goal - at) / 4), 0) if number else None
        steps.release().perform()

    def overflow(self) -> int:
        return int(
            self.run(
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )

    def complaints(self) -> list[str]:
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("console")
    return write_history(folder / "history", records=RECORDS, replicas=1, seed=7).folder


@pytest.fixture(scope="module")
def url(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(made, tmp_path_factory.mktemp("index")) as found:
        yield found


@pytest.fixture
def page(running: Any, url: str) -> Iterator[Page]:
    running.set_window_size(1280, 900)
    running.get_log("browser")
    found = Page(running, url)
    yield found
    assert found.complaints() == []


def test_search_finds_and_leads_on(page: Page) -> None:
    page.open("view=search")
    field = page.one("input[name=q]")
    field.send_keys("mallory createacls", Keys.ENTER)
    page.until(lambda: page.all("#rows .row") and "mallory" in page.text().lower())
    _, said = asked(page.url, "search?q=mallory%20createacls")
    assert str(said["total"]) in page.text("#count")
    assert len(page.all("#rows .row")) == min(100, said["total"])
    page.one("#rows .row a").click()
    page.until(lambda: page.text("main h1").startswith("Record"))
    assert page.place()["offset"] == str(said["items"][0]["offset"])


def test_the_slider_changes_the_state(page: Page) -> None:
    page.open("view=state&table=topics")
    newest = page.text("#rows")
    end = page.text("main h1")
    page.drag("to", 0.3)
    page.until(lambda: page.text("main h1") != end and page.place().get("at"))
    page.until(lambda: page.text("#rows") != newest)
    at = page.place()["at"]
    _, said = asked(page.url, f"state?table=topics&at={at}")
    page.until(lambda: f"offset {said['offset']:,}" in page.text("main h1"))
    for one in said["items"][:5]:
        assert one["name"] in page.text("#rows")
    page.one("#to").send_keys(Keys.ARROW_LEFT)
    page.until(lambda: page.place()["at"] != at)


def test_dragging_gives_the_difference(page: Page) -> None:
    page.open("view=state&table=topics")
    page.drag("to", 0.8)
    page.until(lambda: page.place().get("at"))
    # The other handle follows when the moment is shown.
    page.until(lambda: abs(page.middle("from") - page.middle("to")) < 1)
    page.drag("from", 0.4)
    page.until(lambda: page.place().get("view") == "diff" and "From offset" in page.text("main h1"))
    place = page.place()
    assert int(place["from"]) < int(place["at"])
    _, said = asked(page.url, f"different?from={place['from']}&to={place['at']}")
    total = sum(count for kinds in said["tables"].values() for count in kinds.values())
    page.until(lambda: page.text("#count") == f"{total:,} entries differ")
    assert page.all(".was")
    assert page.all(".now")


VIEWS = (
    "view=overview",
    "view=search&type=config&since=1000&until=4000",
    "view=state&table=brokers&at=3000",
    "view=diff&from=1500&at=3000&table=topics",
    "view=thing&table=brokers&name=1&at=2500",
    "view=record&offset=2222&at=2222",
)


@pytest.mark.parametrize("place", VIEWS)
def test_a_permalink_restores_the_view(page: Page, place: str) -> None:
    page.open(place)
    page.until(lambda: page.text("#told"))
    first = page.text()
    moment = page.text("#told")
    page.open("view=search&q=nothing-is-called-so")
    page.open(place)
    page.until(lambda: page.text() == first)
    assert page.text("#told") == moment
    # Back from a click leads to the same view.
    page.one("nav a:nth-child(2)").click()
    page.until(lambda: page.place().get("view") == "search" and page.text() != first)
    page.driver.back()
    page.until(lambda: page.text() == first)


def test_a_thing_says_why_it_is_so(page: Page) -> None:
    _, said = asked(page.url, "search?type=broker_registration_change&limit=500")
    at = next(one["offset"] for one in said["items"] if _why(page, one["offset"]))
    wanted = _why(page, at)
    page.open(f"view=thing&table=brokers&name=1&at={at}")
    page.until(lambda: page.all("#why"))
    for one in wanted:
        assert one["says"] in page.text("#why")


def _why(page: Page, at: int) -> list[dict[str, str]]:
    status, said = asked(page.url, f"explain?table=brokers&name=1&at={at}")
    return list(said["findings"]) if status == 200 else []


@pytest.mark.parametrize(("kind", "suffix"), [("csv", "csv"), ("json", "jsonl")])
def test_a_click_saves_what_is_shown(page: Page, tmp_path: Path, kind: str, suffix: str) -> None:
    allowed = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
    page.open("view=state&table=partitions")
    total = asked(page.url, "counts")[1]["tables"]["partitions"]
    (button,) = (one for one in page.all(".tools button") if one.text == kind.upper())
    button.click()
    (saved,) = page.until(lambda: list(tmp_path.glob(f"*.{suffix}")))
    page.until(lambda: f"{total:,} rows" in page.text(".tools"))
    assert len(saved.read_text().splitlines()) == total + (kind == "csv")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_view_fits_in_light_and_dark(page: Page, width: int, scheme: str) -> None:
    page.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for place in VIEWS:
            page.open(place)
            assert page.overflow() <= 0, place
        ground = page.run("return getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, ground.removeprefix("rgb(").removesuffix(")").split(",")))
        assert (light > 382) == (scheme == "light")
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_nothing_is_asked_of_other_servers_and_names_are_no_markup(
    running: Any, tmp_path: Path
) -> None:
    write_node(
        tmp_path / "node",
        40,
        3,
        provenance=Provenance(principal=HOSTILE, operation="<b>x</b>", reason=REASON),
    )
    running.get("about:blank")
    running.get_log("browser")
    running.get_log("performance")
    with serving(tmp_path / "node", tmp_path / "index") as url:
        page = Page(running, url)
        page.open("view=search")
        page.until(lambda: page.all("#rows .row"))
        assert "<script>alert('p')</script>" in page.text()
        assert not page.all("main script, main img, main b b")
        messages = [json.loads(e["message"])["message"] for e in running.get_log("performance")]
        urls = [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]
        assert [one for one in urls if not one.startswith((url, "about:", "data:"))] == []
        assert page.complaints() == []


def test_a_console_with_a_token_opens_with_it(running: Any, made: Path, tmp_path: Path) -> None:
    with serving(made, tmp_path / "index", "--new-token") as url:
        token = url.partition("#token=")[2]
        assert asked(url, "counts")[0] == 401
        assert asked(url, "counts", "wrong")[0] == 401
        assert asked(url, "counts", token)[0] == 200
        page = Page(running, url.partition("#")[0])
        running.get("about:blank")
        running.get(url)
        page.until(lambda: "State at offset" in page.text())
        assert "token" not in page.place()
    running.get_log("browser")
