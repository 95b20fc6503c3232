"""Log lines: their form, their level, and what they never contain."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from runtime.logging import configure, set_level


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_into_a_file_an_event_is_one_line_of_json() -> None:
    out = io.StringIO()
    log = configure("info", stream=out, node_id=3)
    log.info("link_up", peer=2, text="two\nlines", raw=b"\xff")
    [line] = lines(out)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "link_up",
        "level": "info",
        "node_id": 3,
        "peer": 2,
        "text": "two\nlines",
        "raw": "b'\\xff'",
    }


def test_onto_a_terminal_it_is_for_people() -> None:
    out = Terminal()
    configure("info", stream=out).warning("link_down", peer=2)
    assert "link_down" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_the_level_changes_while_the_process_runs_also_for_loggers_in_hand() -> None:
    out = io.StringIO()
    log = configure("info", stream=out).bind(part="links")
    log.debug("a")
    set_level("debug")
    log.debug("b")
    set_level("error")
    log.warning("c")
    log.error("d")
    assert [line["event"] for line in lines(out)] == ["b", "d"]
    with pytest.raises(KeyError):
        set_level("loud")


def test_a_traceback_is_one_string_without_the_values_of_variables() -> None:
    out = io.StringIO()
    log = configure("error", stream=out)

    def fail(secret: str) -> None:
        raise RuntimeError(f"it is {len(secret)} long")

    try:
        fail("s3c" + "ret")
    except RuntimeError:
        log.exception("http_handler_failed")
    [line] = lines(out)
    assert line["exception"].splitlines()[-1] == "RuntimeError: it is 6 long"
    assert "s3cret" not in out.getvalue()


def test_secrets_are_not_written() -> None:
    out = io.StringIO()
    configure("info", stream=out).bind(token="abc").info("x", password="def", tokens=3)
    [line] = lines(out)
    assert line["token"] == line["password"] == "(not written)"
    assert line["tokens"] == 3


def test_what_libraries_log_comes_out_in_the_same_form() -> None:
    out = io.StringIO()
    configure("info", stream=out, node_id=1)
    logging.getLogger("asyncio").warning("slow %s", "callback")
    logging.getLogger("asyncio").info("not wanted")
    [line] = lines(out)
    assert line["event"] == "library_log"
    assert (line["library"], line["text"], line["level"]) == ("asyncio", "slow callback", "warning")
    assert line["node_id"] == 1
