"""Ratios and bounds of the comparison with other services, from given rounds."""

import pytest

from benchmarks.peers.judging import Ratio, Run, judge, ratio
from benchmarks.peers.page import picture, table
from benchmarks.peers.rows import Bound

RUN = Run(
    "a machine",
    {
        "create64": {
            "logberg": [{"rate": 100.0, "cpu": 900.0}, {"rate": 300.0, "cpu": 700.0}, {}],
            "etcd": [{"rate": 400.0, "cpu": 100.0}, {"rate": 400.0, "cpu": 100.0}, {"rate": 1.0}],
            "zookeeper": [{"rate": 800.0}, {"rate": 1000.0}],
        },
        "bulk": {
            "logberg": [{"seconds": 4.0}],
            "etcd": [{"seconds": 2.0}],
            "kraft": [{"seconds": 5.0}],
        },
        "kill": {"etcd": [{"gap": 1000.0}]},
    },
)


def test_a_ratio_compares_figures_of_the_same_round() -> None:
    assert ratio(RUN, "create64", "rate", "etcd") == Ratio(0.5, 0.25, 0.75)
    assert ratio(RUN, "create64", "rate", "kraft") is None
    assert ratio(RUN, "kill", "gap", "etcd") is None


@pytest.mark.parametrize(
    ("bound", "limit", "met"),
    [
        (Bound("create64", "rate", 0.5, "etcd"), 200.0, True),
        (Bound("create64", "rate", 0.6, "etcd"), 240.0, False),
        (Bound("create64", "rate", 0.1, "best"), 90.0, True),
        (Bound("create64", "cpu", 800), 800.0, True),
        (Bound("create64", "cpu", 799), 799.0, False),
        (Bound("bulk", "seconds", 1.0, "best"), 2.0, False),
        (Bound("bulk", "seconds", 1.0, "kraft"), 5.0, True),
    ],
)
def test_a_rate_is_at_least_its_bound_and_all_else_at_most(
    bound: Bound, limit: float, met: bool
) -> None:
    [judged] = judge(RUN, [bound])
    assert judged.limit == pytest.approx(limit)
    assert judged.met is met


def test_what_was_not_measured_is_not_judged() -> None:
    bounds = [Bound("kill", "gap", 100), Bound("create64", "rate", 0.5, "kraft")]
    assert judge(RUN, bounds) == []


def test_the_page_shows_whether_we_are_better_whatever_the_unit() -> None:
    lines = table(RUN).splitlines()
    assert "| creations, 64 outstanding /s | 200 | 400 (0.5; 0.25 to 0.75) |" in lines[4]
    assert "| 100,000 partitions in bulk s | 4 | 2 (0.5; 0.5 to 0.5) | - | 5 (1.2;" in lines[7]


def test_the_picture_has_a_line_for_each_row_that_can_be_compared() -> None:
    drawn = picture(RUN)
    assert "creations, 64 outstanding" in drawn
    assert "SIGKILL" not in drawn
