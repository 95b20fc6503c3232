"""The report in a real browser: it draws, sorts, filters, logs no error, sends no request."""

import http.server
import re
import threading
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="the browser is driven by selenium")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.report.opened import Opened
from tests.report.sample import HOSTILE, REASON, TOPIC, changes

pytestmark = pytest.mark.slow


@pytest.fixture
def server():
    """Something on this machine that a page could ask; counts who does."""

    asked = []

    class Counting(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}/x", asked
    found.shutdown()
    thread.join()
    found.server_close()


def test_nothing_is_said_on_the_console_and_nothing_is_requested(opened: Opened) -> None:
    opened.all("body")
    assert opened.console() == []
    assert [url for url in opened.requested() if not url.startswith("data:")] == [opened.url]
    assert opened.run("return performance.getEntriesByType('resource').length") == 0


def test_a_page_that_asks_would_be_noticed(running, server, tmp_path: Path) -> None:
    url, asked = server
    path = tmp_path / "asking.html"
    path.write_text(f'<!doctype html><img src="{url}"><script>console.error("oh")</script>')
    asking = Opened(running, path)
    assert url in asking.requested()
    assert any("oh" in line for line in asking.console())
    assert asked


def test_the_policy_forbids_requests_even_to_a_script_of_the_page(opened: Opened, server) -> None:
    url, asked = server
    refused = opened.driver.execute_async_script(
        "const done = arguments[1]; fetch(arguments[0], {mode: 'no-cors'})"
        ".then(() => done('let through'), () => done('refused'))",
        url,
    )
    assert refused == "refused"
    assert asked == []
    assert any("Content Security Policy" in line for line in opened.console())


def test_every_drawing_has_size_words_and_colours(opened: Opened) -> None:
    drawings = opened.all(".drawing > svg")
    shown = [each for each in drawings if each.is_displayed()]
    assert len(shown) == 7, "two of changes, two of availability, two of a partition, the heat map"
    for drawing in drawings:
        assert len(drawing.get_attribute("aria-label")) > 60
    for drawing in shown:
        assert drawing.size["width"] > 800
        assert drawing.size["height"] > 60
        marks = opened.run("return [...arguments[0].querySelectorAll('[data-tip]')]", drawing)
        assert marks
        for mark in marks[:20]:
            assert re.fullmatch(r"rgb\(\d+, \d+, \d+\)", opened.style(mark, "fill"))
            assert opened.style(mark, "fill") != "rgb(0, 0, 0)", (
                "black is what an unknown colour is"
            )


def test_the_bars_of_changes_are_those_of_the_rows(opened: Opened) -> None:
    tips = opened.run(
        "return [...document.querySelectorAll('#changes [data-tip]')].map(m => m.dataset.tip)"
    )
    rows = [row for row in changes() if row[3] != "REQUEST_OUTCOME_RECORD"]
    drawn = sum(_amount(tip) for tip in tips)
    assert drawn == sum(row[4] for row in rows)
    heights = opened.run(
        "return [...document.querySelectorAll('#changes figure')].map(figure =>"
        " [...figure.querySelectorAll('[data-tip]')].map(m => ["
        "   m.dataset.tip, m.getBoundingClientRect().height]))"
    )
    for figure in heights:
        scale = {round(height / _amount(tip), 1) for tip, height in figure if height > 30}
        assert max(scale) - min(scale) < 0.15, "one change is as high everywhere"


def test_the_shortest_happening_can_be_seen(opened: Opened) -> None:
    widths = opened.run(
        "return [...document.querySelectorAll('#timelines [data-tip]')]"
        ".map(mark => mark.getBoundingClientRect().width).filter(width => width)"
    )
    assert len(widths) > 50
    assert min(widths) > 1.5


def test_filtering_keeps_the_rows_that_hold_all_words(opened: Opened) -> None:
    table, field = opened.all("#changes .table")[0], opened.all("#changes .filter input")[0]

    def shown() -> list[str]:
        rows = table.find_elements("css selector", "tbody tr")
        return [row.text for row in rows if row.is_displayed()]

    before = shown()
    field.send_keys("deploy-bot alter")
    (left,) = shown()
    assert len(before) > 5
    assert left.startswith("User:deploy-bot AlterConfigs")
    assert opened.all("#changes .filter span")[0].text == f"1 of {len(before)} rows"
    field.clear()
    field.send_keys("nobody has this name")
    assert shown() == []
    assert opened.one("#said").get_attribute("textContent").startswith("0 of ")
    field.send_keys(Keys.CONTROL, "a", Keys.DELETE)
    assert shown() == before


def test_sorting_by_keyboard_is_by_value_and_told(opened: Opened) -> None:
    heads = opened.all("#availability th button")
    (without,) = [each for each in heads if each.text.startswith("Without leader")]
    column = (
        "return [...document.querySelectorAll('#availability tbody tr')]"
        ".map(row => +row.cells[1].dataset.sort)"
    )
    without.send_keys(Keys.ENTER)
    assert opened.run(column) == sorted(opened.run(column), reverse=True)
    assert without.find_element("xpath", "..").get_attribute("aria-sort") == "descending"
    without.send_keys(Keys.ENTER)
    values = opened.run(column)
    assert values == sorted(values)
    assert values[0] != values[-1]
    assert without.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    assert "ascending" in opened.one("#said").get_attribute("textContent")


def test_one_partition_is_shown_and_another_can_be_chosen(opened: Opened) -> None:
    lines = opened.all(".timeline")
    assert len(lines) >= 8
    assert [each.is_displayed() for each in lines] == [True] + [False] * (len(lines) - 1)
    choice = Select(opened.one("#partition"))
    choice.select_by_index(2)
    assert [place for place, each in enumerate(lines) if each.is_displayed()] == [2]
    assert lines[2].find_element("css selector", "h3").text.split()[0] in choice.options[2].text


def test_a_mark_says_what_it_is_when_it_is_pointed_at(opened: Opened) -> None:
    tip = opened.one("#tip")
    assert not tip.is_displayed()
    mark = opened.all("#fencing [data-tip*='broker 3'][data-tip*='%']")[0]
    opened.run("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(opened.driver).move_to_element(mark).perform()
    assert tip.is_displayed()
    assert tip.get_attribute("textContent") == mark.get_attribute("data-tip")
    assert re.search(r"broker 3, 2026-11-0\d: fenced .* of 1\sd", tip.text)


def test_names_that_are_markup_stay_words(opened: Opened) -> None:
    assert HOSTILE in opened.one("#changes").text
    assert REASON in opened.one("#privileged").get_attribute("textContent")
    assert opened.all("img, iframe, object, embed, link[rel=stylesheet], form") == []
    assert len(opened.all("script")) == 1
    assert opened.all("[onerror], [onload], [onclick], [style]:not(#tip)") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_light_and_dark(opened: Opened, scheme: str) -> None:
    opened.emulate(prefers_color_scheme=scheme)
    paper = _rgb(opened.style(opened.one("body"), "backgroundColor"))
    assert (sum(paper) > 600) == (scheme == "light")
    for selector in (
        "body",
        ".about dt",
        ".said",
        "td small",
        ".key li",
        ".left-out",
        ".bad > span",
    ):
        for each in opened.all(selector)[:3]:
            ratio = _contrast(_rgb(opened.style(each, "color")), paper)
            assert ratio >= 4.5, f"{selector} has a contrast of {ratio:.1f}"
    for text in opened.all(".drawing text")[:10]:
        assert _contrast(_rgb(opened.style(text, "fill")), paper) >= 4.5


def test_on_paper_it_is_light_and_without_controls(opened: Opened) -> None:
    opened.emulate("print", prefers_color_scheme="dark")
    assert sum(_rgb(opened.style(opened.one("body"), "backgroundColor"))) > 600
    for selector in ("nav", ".filter", ".choose", ".timeline details"):
        assert not any(each.is_displayed() for each in opened.all(selector)), selector
    assert {opened.style(each, "maxHeight") for each in opened.all(".table")} == {"none"}


_CUT_OFF = """
const cut = [];
for (const box of document.querySelectorAll("body *")) {
  const style = getComputedStyle(box);
  if (!/hidden|clip/.test(style.overflowX) || style.clipPath !== "none") continue;
  const room = box.getBoundingClientRect();
  const texts = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const seen = range.getBoundingClientRect();
    if (seen.width && (seen.left < room.left - 1 || seen.right > room.right + 1))
      cut.push(texts.currentNode.data.trim());
  }
}
return cut;
"""
"""Texts that lie partly outside of a box that hides what is outside of it."""


@pytest.mark.parametrize("width", [1200, 500, 400, 320])
def test_nothing_is_wider_than_the_window_nor_cut_off(opened: Opened, width: int) -> None:
    with opened.as_wide_as(width):
        wide, room = opened.run(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        cut_off = opened.run(_CUT_OFF)
    assert room == width
    assert wide <= room
    assert cut_off == []


def test_readers_of_the_screen_find_their_way(opened: Opened) -> None:
    levels = [int(each.tag_name[1]) for each in opened.all("h1, h2, h3, h4")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for table in opened.all("table"):
        assert table.find_element("css selector", "caption").get_attribute("textContent")
        assert not table.find_elements("css selector", "thead th:not([scope=col])")
        assert not table.find_elements("css selector", "tbody th:not([scope=row])")
    ids = [each.get_attribute("id") for each in opened.all("[id]")]
    assert len(ids) == len(set(ids))
    anchors = [each.get_attribute("href").partition("#")[2] for each in opened.all("a[href]")]
    assert set(anchors) <= set(ids)
    named = {each.get_attribute("aria-labelledby") for each in opened.all("[aria-labelledby]")}
    assert named <= set(ids)
    assert TOPIC in opened.one("#availability").text


def test_the_first_tab_stop_leads_past_the_menu(opened: Opened) -> None:
    opened.one("body").send_keys(Keys.TAB)
    active = opened.driver.switch_to.active_element
    assert active.get_attribute("href").endswith("#summary")
    assert active.is_displayed()


def _amount(tip: str) -> int:
    """Return how many changes a mark shows."""
    return int(re.search(r": ([\d\u202f]+) change", tip)[1].replace("\u202f", ""))


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return red, green, blue


def _contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """Contrast as WCAG 2 counts it: 1 to 21."""

    def light(colour: tuple[int, int, int]) -> float:
        parts = [
            part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4
            for part in colour
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)
