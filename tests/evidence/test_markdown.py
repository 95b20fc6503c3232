"""Numbers, tables and pictures of text say what was measured."""

from tests.evidence.histogram import histogram
from tests.evidence.markdown import duration, none_or_loud, number, short, table


def test_every_sample_is_in_the_picture() -> None:
    samples = [0.0, 49.9, 50.0, 120.0, 999.0, 5_000.0]
    drawn = histogram(samples)
    counts = [
        int(line.split("ms")[1].replace("or more", "").split()[0]) for line in drawn.splitlines()
    ]
    assert sum(counts) == len(samples)
    assert drawn.splitlines()[0].startswith("    0 to   50 ms     2  ███")
    assert " 2000 ms or more     1  " in drawn


def test_a_few_among_many_still_show() -> None:
    drawn = histogram([60.0] * 1000 + [700.0])
    assert drawn.splitlines()[-1].endswith("1  █")
    assert "  100 to  150 ms     0" in drawn
    assert histogram([]) == ""


def test_numbers() -> None:
    assert [number(n) for n in (0, 1234, 12.34)] == ["0", "1,234", "12.3"]
    assert [short(n) for n in (999, 1_000, 9_960, 123_456, 1_500_000)] == [
        *("999", "1.0k", "10k", "123k"),
        "1.5M",
    ]
    assert [duration(s) for s in (5, 600, 7_200, 259_200)] == ["5 s", "10 min", "2.0 h", "3.0 days"]


def test_what_is_wrong_is_loud() -> None:
    assert none_or_loud(0) == "0"
    assert none_or_loud(2, "silent") == "**2 silent !**"


def test_a_table() -> None:
    made = table(("a", "n"), [("x|y", "1")], right=(1,))
    assert made == "| a | n |\n|---|--:|\n| x\\|y | 1 |\n"
