"""Refused attempts: all are counted, and the lines in the log are bounded."""

from collections.abc import Callable

import structlog
from structlog.testing import capture_logs

from runtime.sockets.refusals import (
    FIELD_CHARS_MAX,
    HANDSHAKE,
    KAFKA,
    KAFKA_DEFECT,
    KINDS_MAX,
    LINES_AT_ONCE,
    REQUEST,
    Refusals,
)


class Timers:
    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.refusals = Refusals(structlog.get_logger(), lambda _, call: self.calls.append(call))

    def pass_interval(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


def test_the_first_is_told_at_once_and_the_rest_with_their_count() -> None:
    timers = Timers()
    with capture_logs() as logs:
        for _ in range(5):
            timers.refusals.refused(REQUEST, who="nobody", why="no token")
        timers.pass_interval()
    assert [(entry["event"], entry["count"]) for entry in logs] == [
        ("request_refused", 1),
        ("request_refused", 4),
    ]
    assert logs[0]["who"] == "nobody"


def test_a_flood_writes_a_bounded_number_of_lines_and_is_counted_exactly() -> None:
    timers = Timers()
    with capture_logs() as logs:
        for n in range(100_000):
            timers.refusals.refused(HANDSHAKE, address=f"10.0.{n % 250}.{n % 199}", error="x" * 999)
            if n % 25_000 == 24_999:
                timers.pass_interval()
        timers.pass_interval()
    assert timers.refusals.counters == {HANDSHAKE: 100_000}
    assert sum(entry["count"] for entry in logs) == 100_000, "every attempt is in some line"
    assert len(logs) <= 5 * (LINES_AT_ONCE + KINDS_MAX + 1)
    assert max(len(entry.get("error", "")) for entry in logs) == FIELD_CHARS_MAX


def test_after_a_quiet_interval_the_next_is_told_at_once_again() -> None:
    timers = Timers()
    with capture_logs() as logs:
        timers.refusals.refused(REQUEST, who="a")
        timers.pass_interval()
        assert timers.calls == [], "nothing to tell, nothing due"
        timers.refusals.refused(REQUEST, who="a")
    assert [entry["count"] for entry in logs] == [1, 1]


def test_what_goes_on_is_told_once_an_interval() -> None:
    timers = Timers()
    with capture_logs() as logs:
        for _ in range(3):
            for _ in range(10):
                timers.refusals.refused(REQUEST, who="a")
            timers.pass_interval()
    assert [entry["count"] for entry in logs] == [1, 9, 10, 10]


def test_refused_kafka_requests_and_defects_have_lines_of_their_own() -> None:
    timers = Timers()
    with capture_logs() as logs:
        timers.refusals.refused(KAFKA, address="10.0.0.7", error="api key 999 is not served")
        timers.refusals.refused(KAFKA_DEFECT, request="CreateTopics", error="KeyError()")
    assert [(e["event"], e["log_level"], e["error"]) for e in logs] == [
        ("kafka_request_refused", "warning", "api key 999 is not served"),
        ("kafka_request_failed", "error", "KeyError()"),
    ]
    assert logs[0]["address"] == "10.0.0.7"
