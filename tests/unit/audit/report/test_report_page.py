"""The page as a file: it loads nothing, escapes everything, is bounded, and is the same each
time.
"""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("jinja2", reason="the report is written by jinja2: logberg[audit]")

from audit.report.page import page
from audit.report.words import DAY_MS, day_of
from tests.report import sample
from tests.report.sample import HOSTILE, REASON, facts, row


class Read(HTMLParser):
    """Elements, attributes and words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def text() -> str:
    return page(facts())


def test_it_is_whole_and_asks_for_nothing(text: str) -> None:
    read = Read(text)
    assert text.startswith("<!doctype html>")
    assert not {"img", "iframe", "object", "embed", "base", "form", "video"} & set(read.tags)
    allowed = {("a", "href"), ("link", "href")}
    for tag, name, value in read.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name != "style", tag
        if name in {"src", "href", "action", "srcset", "xlink:href", "data", "poster"}:
            assert (tag, name) in allowed
            assert value.startswith("#") or value == "data:,"
    for address in re.findall(
        r"https?://[^\s\"'<]+", text.replace('"http://www.w3.org/2000/svg";', "")
    ):
        assert address == "http://example.com/x&#34;", address
    assert "@import" not in text
    assert "url(" not in text


def test_the_policy_names_the_page_s_own_script_and_style_by_hash(text: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    rules = policy.replace("&#39;", "'").split("; ")
    assert rules[0] == "default-src 'none'"
    for tag in ("script", "style"):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in rules
    assert "unsafe" not in policy


def test_what_users_named_is_words(text: str) -> None:
    assert HOSTILE not in text
    assert REASON not in text
    words = Read(text).words
    assert HOSTILE in words
    assert REASON in words
    assert Read(text).tags.count("script") == 2, "the data, and the script"
    assert re.search(r'<script type="text/plain" id="data">[A-Za-z0-9+/=]+</script>', text)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["title", "answered_by"])
def test_what_the_asker_named_is_words(where: str) -> None:
    made = page(facts(**{where: REASON}))
    assert REASON not in made
    assert REASON in Read(made).words


def test_the_same_facts_give_the_same_bytes(text: str) -> None:
    assert page(facts()) == text


def test_every_section_is_there_for_an_empty_history() -> None:
    nothing = {
        name: []
        for name in (
            "unsettled",
            "partition_intervals",
            "broker_intervals",
            "changes",
            "privileged",
        )
    }
    words = " ".join(Read(page(facts(**nothing))).words)
    for said in (
        "No person and no service changed anything",
        "There were no partitions.",
        "No partition changed its leader",
        "No broker was registered",
        "No privileged change was made.",
        "Every transaction ended",
    ):
        assert said in words


@pytest.mark.slow
def test_a_great_history_still_gives_a_small_page() -> None:
    """Three months of 50,000 partitions. The rows are made while they are read."""

    class Intervals:
        """Made while they are read, and read once."""

        def __iter__(self):
            for n in range(50_000):
                for step in range(4 + (n % 997 == 0) * 400):
                    begin = sample.BEGIN_MS + step * DAY_MS // 8
                    yield row(
                        "partition_intervals",
                        topic_id=f"{n:022}",
                        topic_name=f"topic-with-a-rather-long-name-{n:05}",
                        from_offset=step,
                        from_ms=begin,
                        until_ms=begin + DAY_MS // 8,
                        leader=step % 3 - 1,
                        isr=(0, 1),
                        replicas=(0, 1, 2),
                        offline=step % 3 == 0,
                    )

    def changes():
        for day in range(90):
            for n in range(400):
                for operation in ("CreateTopics", "AlterConfigs", "CreateAcls"):
                    yield sample.changed(
                        day=day_of(sample.BEGIN_MS + day * DAY_MS),
                        principal=f"User:service-account-{n}",
                        operation=operation,
                        type="CONFIG_RECORD",
                        records=1 + n,
                        first_ms=sample.BEGIN_MS,
                    )

    period = sample.PERIOD._replace(until_ms=sample.BEGIN_MS + 90 * DAY_MS)
    made = page(
        facts(
            period=period,
            partition_intervals=Intervals(),
            changes=changes(),
        )
    )
    assert len(made) < 4_000_000
    assert "49\u202f975 are not on this page" in made
    assert "1\u202f050 are not on this page" in made
