"""Which bounds of coordination a run misses."""

import pytest

from benchmarks.coordination.judging import CROWD, KILLED, RESIGNED, Measured, missed
from benchmarks.coordination.page import table


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ({}, []),
        ({KILLED: {"logberg": {"beyond": 300.0}}}, []),
        ({KILLED: {"logberg": {"beyond": 300.1}}}, ["beyond"]),
        ({KILLED: {"etcd": {"beyond": 5000.0}}}, []),
        ({RESIGNED: {"logberg": {"p50": 10.0, "p99": 51.0}}}, ["p99"]),
        ({CROWD: {"logberg": {"p99": 99.0, "lost": 1.0, "missing": 2.0}}}, ["missing", "lost"]),
    ],
)
def test_bounds_are_of_our_own_figures(measured: Measured, expected: list[str]) -> None:
    assert [figure.figure for figure in missed(measured)] == expected


def test_the_table_marks_what_is_missed_and_shows_what_was_not_run() -> None:
    text = table({KILLED: {"logberg": {"beyond": 400.0}, "etcd": {"beyond": 28.4}}})
    assert "| worst, beyond the ttl, ms | 400 | 28.4 | - | 300 **missed** |" in text
