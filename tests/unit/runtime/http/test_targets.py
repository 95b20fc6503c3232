"""Parameters of requests: which of them a process remembers."""

import pytest

from runtime.http.targets import path_and_query


@pytest.mark.parametrize(
    ("query", "remembered"),
    [
        ("consistency=stale", True),
        ("minOffset=7&waitMs=100", True),
        ("user=alice", False),
        ("principal=User%3Aalice%40example.com", False),
        ("consistency=stale&principal=User:alice", False),
        # A parameter that no route knows may hold anything.
        ("surname=stale", False),
        ("alice", False),
    ],
)
def test_no_parameters_are_remembered_that_may_hold_a_name(query: str, remembered: bool) -> None:
    """An erased person's name would stay in memory until other requests displaced it."""
    target = f"/v1/topics?{query}"
    first, second = path_and_query(target)[1], path_and_query(target)[1]
    assert first == second
    assert (first is second) is remembered
