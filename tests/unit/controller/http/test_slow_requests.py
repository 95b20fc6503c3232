"""Slow requests: which are logged, and how many lines at most."""

from typing import Any

import structlog
from structlog.testing import capture_logs

from controller.http.slow_requests import LINES_PER_S, SlowRequests
from runtime.http.requests import Caller, Request

REQUEST = Request(
    "POST",
    "/v1/topics",
    headers={"x-logberg-request-id": "r1"},
    caller=Caller("User:alice", "token", "10.0.0.9"),
)


def lines(slow_s: float, *answered: tuple[str, float, float]) -> list[Any]:
    slow = SlowRequests(slow_s, structlog.get_logger())
    with capture_logs() as logs:
        for operation, arrived, now in answered:
            slow.answered(operation, REQUEST, 200, arrived, now, 3)
    return list(logs)


def test_a_slow_request_is_logged_with_who_and_how_long() -> None:
    (line,) = lines(1.0, ("create_topics", 5.0, 6.5), ("create_topics", 5.0, 5.9))
    assert line == {
        "event": "request_slow",
        "log_level": "warning",
        "operation": "create_topics",
        "status": 200,
        "seconds": 1.5,
        "principal": "User:alice",
        "request_id": "r1",
        "waiting_decisions": 3,
        "left_out": 0,
    }


def test_requests_that_wait_for_news_are_not_slow() -> None:
    held = ("metadata_fetch", "read_log", "watch_resource", "watch_coordination")
    assert lines(1.0, *((operation, 0.0, 60.0) for operation in held)) == []


def test_without_a_limit_nothing_is_logged() -> None:
    assert lines(0.0, ("create_topics", 0.0, 60.0)) == []


def test_a_node_that_is_slow_for_all_writes_few_lines_and_counts_the_others() -> None:
    many = [("create_topics", 0.0, 100.0 + n / 1000) for n in range(500)]
    found = lines(1.0, *many, ("create_topics", 0.0, 101.0))
    assert len(found) == LINES_PER_S + 1
    assert [line["left_out"] for line in found] == [0] * LINES_PER_S + [500 - LINES_PER_S]
