"""The report in a real browser: it draws, sorts, filters, logs no error, sends no request."""

import http.server
import re
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="the browser is driven by selenium")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.report.opened import Opened
from tests.report.sample import (
    BEGIN_MS,
    END_MS,
    HEAD,
    HOSTILE,
    REASON,
    TOPIC,
    changes,
    partition_intervals,
)

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
    drawings = opened.all("svg.plot")
    assert len(drawings) == 6, "two of changes, two of availability, the cells, one timeline"
    for drawing in drawings:
        assert len(drawing.get_attribute("aria-label")) > 50
        assert drawing.size["width"] > 600
        assert drawing.size["height"] > 60
        marks = opened.run("return [...arguments[0].querySelectorAll('[data-tip]')]", drawing)
        assert marks
        for mark in marks[:20]:
            assert re.fullmatch(r"rgb\(\d+, \d+, \d+\)", opened.style(mark, "fill"))
            assert opened.style(mark, "fill") != "rgb(0, 0, 0)", (
                "black is what an unknown colour is"
            )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_normal_is_grey(opened: Opened, scheme: str) -> None:
    opened.emulate(prefers_color_scheme=scheme)
    for selector in ("a", "p", "button", "rect.normal", "rect.present", "rect.lead", ".verdict"):
        for each in opened.all(selector)[:20]:
            name = "fill" if selector.startswith("rect") else "color"
            assert _spread(_rgb(opened.style(each, name))) < 30, selector
    for tone in ("bad", "warn"):
        assert _spread(_rgb(opened.style(opened.all(f"rect.{tone}")[0], "fill"))) > 80


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_first_screen_shows_the_worst_finding(opened: Opened, width: int, scheme: str) -> None:
    opened.emulate(prefers_color_scheme=scheme)
    with opened.as_wide_as(width):
        worst = opened.all(".findings li")[0]
        assert worst.rect["y"] + worst.rect["height"] < 1_000
        for words in ("CRITICAL", HOSTILE, "token", "10.9.77.3", "2026-10-25 00:00:00", REASON):
            assert words in worst.text
        paper = _rgb(opened.style(opened.one("body"), "backgroundColor"))
        for each in worst.find_elements("css selector", "h3, .severity, dt, dd, summary"):
            assert _contrast(_rgb(opened.style(each, "color")), paper) >= 4.5


def test_a_bar_with_a_finding_is_marked(opened: Opened) -> None:
    marked = opened.all("#changes rect.bad[data-tip]")
    (tip,) = [each.get_attribute("data-tip") for each in marked]
    assert tip.startswith("2026-10-25, User:ana: "), "the other one changed nothing that day"
    assert "a finding is among them" in opened.all("#changes .key")[0].text


def test_the_bars_of_changes_are_those_of_the_rows(opened: Opened) -> None:
    tips = opened.run(
        "return [...document.querySelectorAll('#changes rect[data-tip]')].map(m => ["
        " m.dataset.tip, m.getBoundingClientRect().height])"
    )
    rows = [row for row in changes() if row.type != "REQUEST_OUTCOME_RECORD"]
    assert sum(_amount(tip) for tip, _ in tips) == sum(row.records for row in rows)
    for tip, height in tips:
        amount = _amount(tip)
        assert round(height) == 5 * (1 + (amount >= 10) + (amount >= 100) + (amount >= 1_000))


def test_the_shortest_happening_can_be_seen(opened: Opened) -> None:
    widths = opened.run(
        "return [...document.querySelectorAll('#timelines rect[data-tip]')]"
        ".map(mark => mark.getBoundingClientRect().width)"
    )
    assert len(widths) > 5
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
    assert left.startswith("User:deploy-bot\ncertificate from 10.0.9.4\n")
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


def test_the_worst_partition_is_drawn_and_any_other_when_it_is_asked_for(opened: Opened) -> None:
    assert _drawn(opened) == ["orders-0"]
    field = opened.one("#thing")
    field.send_keys("orders 7")
    offered = [each.text for each in opened.all("#matches button")]
    assert offered == ["partition:orders-7", "partition:orders-17"]
    assert opened.one("#matches-said").text == "2 found"
    opened.all("#matches button")[1].click()
    assert _drawn(opened) == ["orders-17", "orders-0"]
    assert opened.driver.switch_to.active_element.text == "orders-17"
    field.clear()
    field.send_keys("broker:3", Keys.ENTER)
    assert _drawn(opened)[0] == "broker 3"
    field.clear()
    field.send_keys("topic:orders", Keys.ENTER)
    assert _drawn(opened)[0] == "orders"
    lanes = opened.run(
        "return document.querySelectorAll('.timeline')[0].querySelectorAll('li').length"
    )
    assert lanes == 3 + 20, "the key, and a lane for each partition"


def test_a_timeline_shows_every_step_and_comes_closer(opened: Opened) -> None:
    rows = [row for row in partition_intervals() if row[1] == 0 and (row[6] or END_MS) >= BEGIN_MS]
    field = opened.one("#thing")
    field.send_keys("partition:orders-0", Keys.ENTER)
    line = opened.all(".timeline")[0]
    bars = "return [...arguments[0].querySelectorAll('rect[data-tip]')].map(m => m.dataset.tip)"
    away = [tip for tip in opened.run(bars, line) if tip.startswith("orders-0: no leader")]
    assert away == ["orders-0: no leader, 1 h 30 min, 2026-10-25 00:10:00 to 2026-10-25 01:40:00"]
    assert f"of {len(rows)} steps" in line.get_attribute("textContent")
    whole = len(opened.run(bars, line))
    _button(line, "Worst time").click()
    assert "2026-10-24 22:40:00 to 2026-10-25 03:10:00" in line.text
    assert 0 < len(opened.run(bars, line)) < whole
    _button(line, "Whole period").click()
    assert len(opened.run(bars, line)) == whole
    _button(line, "Remove").click()
    assert _drawn(opened) == ["orders-0"]


def test_a_name_in_a_table_leads_to_its_timeline(opened: Opened) -> None:
    link = opened.all("#availability a[data-thing]")[1]
    name = link.text
    opened.run("arguments[0].click()", link)
    assert _drawn(opened) == [name, "orders-0"]


@pytest.mark.parametrize(
    ("selector", "title", "command"),
    [
        ("#findings .ref", "came from where it never was", "--id stolen_identity@70"),
        ("#findings td .ref", "high 5", "--id stolen_identity@105"),
        (
            "#changes rect[data-ref]",
            "2026-10-20, User:ana: 5 changes (certificate from",
            "audit log /var/lib/logberg",
        ),
        ("#changes td .ref", "AlterConfigs by User:terraform", "--operation AlterConfigs"),
        ("#availability rect[data-ref]", "without leader", "--resource 'partition:*'"),
        ("#availability td .ref", "orders-0: bad times", "audit history"),
        ("#fencing rect[data-ref]", "broker 1, 2026-10-27: fenced", "history /var/lib/logberg bro"),
        ("#fencing td .ref", "broker 3: times fenced", "broker:3"),
        ("#privileged td .ref", "Access rights", "--resource 'acl:*'"),
        ("#transactions td .ref", "open transaction at offset 507", "--from 507 --to 509"),
        ("#timelines rect[data-go]", "broker 0: leads", "partition:orders-0"),
    ],
)
def test_a_figure_leads_to_its_records(
    opened: Opened, selector: str, title: str, command: str
) -> None:
    dialog = opened.one("#records")
    assert not dialog.is_displayed()
    opened.run(
        "arguments[0].dispatchEvent(new Event('click', {bubbles: true}))", opened.all(selector)[0]
    )
    assert dialog.is_displayed()
    assert title in opened.one("#h-records").text.replace("\xa0", " ")
    assert command in opened.one("#command").text
    assert opened.all("#records tbody tr")
    if "data-go" not in selector:
        said = opened.all("#records tbody tr")[0].text
        assert f"{HOSTILE} (token from 10.9.77.3)" in said
        assert REASON in said
    opened.one("#close").click()
    assert not dialog.is_displayed()


def test_the_keyboard_reaches_every_bar(opened: Opened) -> None:
    drawing = opened.all("#fencing svg.plot")[0]
    marks = drawing.find_elements("css selector", "rect[data-ref]")
    assert [each.get_attribute("tabindex") for each in marks].count("0") == 1
    opened.run("arguments[0].focus()", marks[0])
    opened.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert opened.run("return document.activeElement === arguments[0]", marks[1])
    ActionChains(opened.driver).send_keys(Keys.ENTER).perform()
    assert opened.one("#h-records").get_attribute("textContent") == marks[1].get_attribute(
        "data-tip"
    )
    ActionChains(opened.driver).send_keys(Keys.ESCAPE).perform()
    assert not opened.one("#records").is_displayed()


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
    assert len(opened.all("script")) == 2, "the data, and the script"
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
    for text in opened.all(".plot text")[:10]:
        assert _contrast(_rgb(opened.style(text, "fill")), paper) >= 4.5


def test_on_paper_it_is_light_and_without_controls(opened: Opened) -> None:
    opened.emulate("print", prefers_color_scheme="dark")
    assert sum(_rgb(opened.style(opened.one("body"), "backgroundColor"))) > 600
    for selector in ("nav", ".filter", ".ask", ".tools"):
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


@pytest.mark.parametrize("width", [1280, 500, 400, 320])
def test_nothing_is_wider_than_the_window_nor_cut_off(opened: Opened, width: int) -> None:
    with opened.as_wide_as(width):
        wide, room = opened.run(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        cut_off = opened.run(_CUT_OFF)
    assert room == width
    assert wide <= room
    assert cut_off == []


def test_without_script_findings_certificate_and_tables_are_there(opened: Opened) -> None:
    opened.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened.driver.get(opened.url)
        for words in (HOSTILE, "10.9.77.3", "5 records: 70, 71, 72"):
            assert words in opened.all(".findings li")[0].text
        assert HEAD in opened.one("#head").text
        assert len(opened.all("#availability tbody tr")) > 10
        assert "logberg audit history /var/lib/logberg" in opened.one("noscript").text
        assert not opened.one("#ask").is_displayed()
        assert not opened.one("#how").is_displayed()
    finally:
        opened.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


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
    assert active.get_attribute("href").endswith("#findings")
    assert active.is_displayed()


def _drawn(opened: Opened) -> list[str]:
    """Return the names of the timelines on the page, from above."""
    return [each.text for each in opened.all(".timeline h3")]


def _button(line: Any, words: str) -> Any:
    (found,) = [each for each in line.find_elements("css selector", "button") if each.text == words]
    return found


def _spread(colour: tuple[int, int, int]) -> int:
    """Return how far a colour is from grey."""
    return max(colour) - min(colour)


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
