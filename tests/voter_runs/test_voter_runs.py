"""The parts of the runs that decide: who may be killed, and what counts as a pause."""

import pytest

from tests.voter_runs.pauses import Pause, longest_within
from tests.voter_runs.victims import may_be_killed


@pytest.mark.parametrize(
    ("before", "after", "running", "expected"),
    [
        ({1}, {1, 2}, {1, 2, 3}, [3]),
        ({1, 2}, {1, 2, 3}, {1, 2, 3}, [3]),
        ({1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}, [1, 2, 3, 4, 5]),
        ({1, 2, 3, 4}, {1, 2, 3}, {1, 2, 3, 4, 5}, [1, 2, 3, 4, 5]),
        ({1, 2, 3}, {1, 2}, {1, 2, 3}, [3]),
        ({1, 2, 3, 4}, {1, 2, 3}, {2, 3, 4}, [2, 3, 4]),
    ],
)
def test_a_majority_of_both_sets_survives(
    before: set[int], after: set[int], running: set[int], expected: list[int]
) -> None:
    assert may_be_killed(before, after, running) == expected


def test_a_pause_counts_where_it_touches_the_span() -> None:
    at = [1.0, 1.5, 4.0, 4.1, 4.2]
    assert longest_within(at, 0.0, 4.2) == Pause(1.5, 2.5)
    assert longest_within(at, 3.9, 4.2) == Pause(1.5, 2.5)
    assert longest_within(at, 4.05, 4.15).took_s == pytest.approx(0.1)


def test_writes_that_never_go_on_are_a_pause_until_the_end() -> None:
    assert longest_within([1.0, 1.1], 1.0, 9.1) == Pause(1.1, 8.0)
    assert longest_within([], 1.0, 3.0) == Pause(1.0, 2.0)
