"""Numbers, times and pieces of time as the report writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.report.period import Period
from audit.report.words import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    counted,
    day_ms,
    day_of,
    duration,
    listed,
    moment,
    number,
    share,
)

TIMES = st.integers(0, 4_000_000_000_000)


@pytest.mark.parametrize(
    ("length_ms", "words"),
    [
        (0, "0"),
        (840, "840 ms"),
        (1_000, "1.0 s"),
        (9_999, "9.9 s"),
        (10_000, "10 s"),
        (60_000, "1 min"),
        (61_999, "1 min 1 s"),
        (4_000_000, "1 h 6 min"),
        (DAY_MS, "1 d"),
        (DAY_MS + MINUTE_MS, "1 d"),
        (3 * DAY_MS + 4 * HOUR_MS, "3 d 4 h"),
        (1_240 * DAY_MS, "1\u202f240 d"),
    ],
)
def test_lengths_of_time(length_ms: int, words: str) -> None:
    assert duration(length_ms).replace("\xa0", " ") == words
    assert " " not in duration(length_ms)


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (0, 0, "\N{EN DASH}"),
        (0, 7, "0 %"),
        (1, 100_000, "under 0.1 %"),
        (5, 7, "71.4 %"),
        (7, 7, "100 %"),
        (9_990, 10_000, "99.9 %"),
        (9_999, 10_000, "99.99 %"),
        (999_957, 1_000_000, "99.995 %"),
        (10**9 - 1, 10**9, "over 99.999998 %"),
    ],
)
def test_shares(part: int, whole: int, words: str) -> None:
    assert share(part, whole).replace("\xa0", " ") == words


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_a_share_is_never_said_to_be_more_than_it_is(one: int, other: int) -> None:
    part, whole = sorted((one, other))
    said = share(part, whole).replace("\xa0", " ")
    if said == "under 0.1 %":
        assert Fraction(part, whole) < Fraction(1, 1_000)
        return
    value = Fraction(said.removeprefix("over ").removesuffix(" %")) / 100
    assert value <= Fraction(part, whole)
    assert (value == 1) == (part == whole)


def test_words() -> None:
    assert number(1_234_567) == "1\u202f234\u202f567"
    assert counted(1, "batch", "batches") == "1 batch"
    assert counted(0, "batch", "batches") == "0 batches"
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert moment(day_ms("2026-11-20") + HOUR_MS) == "2026-11-20 01:00:00"


@given(TIMES)
def test_a_day_holds_its_times(timestamp_ms: int) -> None:
    begin = day_ms(day_of(timestamp_ms))
    assert begin <= timestamp_ms < begin + DAY_MS


@given(TIMES, st.integers(0, 30 * 366 * DAY_MS), st.integers(2, 100), st.sampled_from([0, DAY_MS]))
def test_pieces_cover_the_period_and_are_few(
    from_ms: int, length_ms: int, at_most: int, at_least_ms: int
) -> None:
    period = Period(from_ms, from_ms + length_ms)
    pieces = period.pieces(at_most, at_least_ms)
    assert 1 <= pieces.number <= at_most
    assert pieces.step_ms >= at_least_ms
    assert pieces.place(period.from_ms) == 0
    assert pieces.place(period.until_ms) == pieces.number - 1
    assert pieces.whole.from_ms <= from_ms
    assert pieces.whole.until_ms > period.until_ms


@pytest.mark.parametrize(
    ("days", "unit"), [(0.01, "10 minutes"), (2, "hour"), (30, "day"), (400, "week")]
)
def test_pieces_are_named(days: float, unit: str) -> None:
    begin = day_ms("2026-11-20")
    assert Period(begin, begin + int(days * DAY_MS)).pieces(96).unit == unit


def test_weeks_begin_on_mondays() -> None:
    begin = day_ms("2026-11-20")
    pieces = Period(begin, begin + 400 * DAY_MS).pieces(96)
    assert day_of(pieces.begin_ms) == "2026-11-16"


@given(TIMES, st.integers(0, 30 * 366 * DAY_MS))
def test_ticks_are_few_and_within(from_ms: int, length_ms: int) -> None:
    period = Period(from_ms, from_ms + length_ms)
    ticks = period.ticks()
    assert len(ticks) <= 10
    assert all(from_ms <= tick <= period.until_ms for tick in ticks)
    if length_ms > 20 * MINUTE_MS:
        assert len(ticks) >= 2


@given(TIMES, st.integers(0, 10**9), TIMES, st.none() | st.integers(0, 10**12))
def test_what_is_clipped_lies_within(from_ms, length_ms, begin_ms, lasts_ms) -> None:
    period = Period(from_ms, from_ms + length_ms)
    until_ms = None if lasts_ms is None else begin_ms + lasts_ms
    part = period.clip(begin_ms, until_ms)
    if part is None:
        assert begin_ms > period.until_ms or (until_ms is not None and until_ms < from_ms)
    else:
        assert period.from_ms <= part[0] <= part[1] <= period.until_ms
